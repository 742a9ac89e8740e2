package web

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// The libraries' authors publish these files. VERSIONS says where a copy comes from, and
// `make ui-test` compares it with the npm package.
func TestVendoredFilesHaveAChecksumALicenseAndAVersion(t *testing.T) {
	vendor, err := fs.Sub(files, "assets/vendor")
	if err != nil {
		t.Fatal(err)
	}
	checksums := map[string]string{}
	for _, fields := range linesOf(t, vendor, "SHA256SUMS", 2) {
		checksums[fields[1]] = fields[0]
	}
	want := []string{"SHA256SUMS", "VERSIONS"}
	for _, fields := range linesOf(t, vendor, "VERSIONS", 5) {
		want = append(want, fields[0], strings.TrimSuffix(fields[0], ".min.js")+".LICENSE")
		if !slices.Contains([]string{"0BSD", "MIT"}, fields[3]) {
			t.Errorf("%s has the license %s, which was not checked", fields[0], fields[3])
		}
	}
	for _, name := range want[2:] {
		content, err := fs.ReadFile(vendor, name)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != checksums[name] {
			t.Errorf("the checksum of %s is %s, but SHA256SUMS has %q", name, got, checksums[name])
		}
	}
	entries, err := fs.ReadDir(vendor, ".")
	if err != nil || len(checksums) != len(want)-2 {
		t.Errorf("SHA256SUMS has %d files, want %d; %v", len(checksums), len(want)-2, err)
	}
	for _, entry := range entries {
		if !slices.Contains(want, entry.Name()) {
			t.Errorf("%s belongs to no library", entry.Name())
		}
	}
}

// linesOf returns the fields in each line, except comments.
func linesOf(t *testing.T, vendor fs.FS, name string, count int) (lines [][]string) {
	t.Helper()
	content, err := fs.ReadFile(vendor, name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != count {
			t.Fatalf("%s: %q has %d fields, want %d", name, line, len(fields), count)
		}
		lines = append(lines, fields)
	}
	return lines
}
