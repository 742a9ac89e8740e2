package ui

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// vendor is the directory with the page's libraries.
const vendor = root + "/internal/web/assets/vendor"

var update = flag.Bool("update", false, "write the libraries in the versions that VERSIONS names, and the screenshots")

func TestVendoredLibrariesEqualTheirPackages(t *testing.T) {
	t.Parallel()
	versions, err := os.ReadFile(filepath.Join(vendor, "VERSIONS"))
	if err != nil {
		t.Fatal(err)
	}
	var sums strings.Builder
	for line := range strings.Lines(string(versions)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var file, license string
		library := binaries.NPM{}
		if _, err := fmt.Sscan(line, &file, &library.Name, &library.Version, &license, &library.Integrity); err != nil {
			t.Fatalf("VERSIONS: %q: %v", line, err)
		}
		library.Files = []string{"package/LICENSE", "package/dist/" + file}
		unpacked, err := library.Unpack(t.Context(), os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range library.Files {
			name := path.Base(source)
			want, err := os.ReadFile(filepath.Join(unpacked, name))
			if err != nil {
				t.Fatal(err)
			}
			if name == "LICENSE" {
				name = strings.TrimSuffix(file, ".min.js") + ".LICENSE"
			}
			compareVendored(t, name, want)
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(want), name)
		}
	}
	compareVendored(t, "SHA256SUMS", []byte(sums.String()))
}

// compareVendored compares a file with its content in the package, or writes it.
func compareVendored(t *testing.T, name string, want []byte) {
	t.Helper()
	file := filepath.Join(vendor, name)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(file); !bytes.Equal(got, want) {
		t.Errorf("%s differs from its package, %v; `make vendored` writes it", file, err)
	}
}
