package plugin

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	root    = "../.."
	version = "v1.2.3"
	// seconds is the time of the files in the archives.
	seconds = "1700000000"
)

// platforms are the platforms of a release.
var platforms = []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64", "windows_amd64", "windows_arm64"}

// goForOtherPlatforms is a program "go" that builds only for this machine. For the other
// platforms, which take minutes, it writes a file in place of the binary, because krew runs
// nothing.
const goForOtherPlatforms = `#!/bin/bash
set -euo pipefail
if [[ $1 != build || $GOOS/$GOARCH == %[1]s ]]; then
	exec %[2]q "$@"
fi
while [[ $1 != -o ]]; do shift; done
mkdir -p "$(dirname "$2")"
echo "$GOOS/$GOARCH" >"$2"
`

// build runs .ci/build-plugin, and returns the directory with the archives.
func build(ctx context.Context, directory, url string) error {
	program, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	path := filepath.Join(directory, "path")
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	script := fmt.Sprintf(goForOtherPlatforms, runtime.GOOS+"/"+runtime.GOARCH, program)
	if err := os.WriteFile(filepath.Join(path, "go"), []byte(script), 0o700); err != nil { // #nosec G306 -- a program
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(root, ".ci", "build-plugin"), directory, version, url)
	command.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "SOURCE_DATE_EPOCH="+seconds,
		"LDFLAGS=-s -w -X github.com/tunnel-gateway/tunnel-gateway/internal/cli.version="+version)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the plugin: %w\n%s", err, output)
	}
	return nil
}

var built struct {
	sync.Once
	directory string
	server    *httptest.Server
	err       error
}

// release returns a directory with the archives, which a server of the tests serves at the
// address in the manifest.
func release(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.directory, built.err = os.MkdirTemp("", "tunnel-gateway-plugin-"); built.err != nil {
			return
		}
		built.server = httptest.NewServer(http.FileServer(http.Dir(built.directory)))
		built.err = build(context.Background(), built.directory, built.server.URL)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.directory
}

// removeRelease removes what [release] has created.
func removeRelease() error {
	if built.server == nil {
		return nil
	}
	built.server.Close()
	return os.RemoveAll(built.directory)
}

// archives returns the names of a release's archives by platform.
func archives() map[string]string {
	names := map[string]string{}
	for _, p := range platforms {
		names[p] = "kubectl-tunnel_gateway_" + version + "_" + p + ".tar.gz"
		if strings.HasPrefix(p, "windows") {
			names[p] = strings.TrimSuffix(names[p], ".tar.gz") + ".zip"
		}
	}
	return names
}

func TestChecksumsNameEveryFile(t *testing.T) {
	directory := release(t)
	var want []string
	for _, name := range append(slices.Collect(maps.Values(archives())), "tunnel-gateway.yaml") {
		content, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		want = append(want, hex.EncodeToString(sum[:])+"  "+name)
	}
	content, err := os.ReadFile(filepath.Join(directory, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(content)), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checksums.txt (-want +got):\n%s", diff)
	}
}

func TestArchivesContainBinaryAndLicense(t *testing.T) {
	directory := release(t)
	for p, name := range archives() {
		t.Run(name, func(t *testing.T) {
			binary := "-rwxr-xr-x kubectl-tunnel_gateway 2023-11-14T22:13:20Z"
			list := tarball
			if strings.HasPrefix(p, "windows") {
				binary, list = strings.Replace(binary, "gateway", "gateway.exe", 1), zipped
			}
			got, err := list(filepath.Join(directory, name))
			if diff := cmp.Diff([]string{"-rw-r--r-- LICENSE 2023-11-14T22:13:20Z", binary}, got); diff != "" || err != nil {
				t.Errorf("error %v, files (-want +got):\n%s", err, diff)
			}
		})
	}
}

// tarball lists the files in a .tar.gz archive.
func tarball(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	compressed, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var files []string
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if err == io.EOF {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		files = append(files, describe(header.FileInfo()))
	}
}

// zipped lists the files in a .zip archive.
func zipped(path string) ([]string, error) {
	r, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var files []string
	for _, f := range r.File {
		files = append(files, describe(f.FileInfo()))
	}
	return files, nil
}

func describe(info os.FileInfo) string {
	return fmt.Sprintf("%s %s %s", info.Mode(), info.Name(), info.ModTime().UTC().Format(time.RFC3339))
}

func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	first, again := release(t), t.TempDir()
	if err := build(t.Context(), again, built.server.URL); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"checksums.txt", "tunnel-gateway.yaml"} {
		want, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(again, name))
		if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
			t.Errorf("%s differs, error %v (-want +got):\n%s", name, err, diff)
		}
	}
}
