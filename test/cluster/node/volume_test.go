package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplacedFilesAreVisibleAtOnce(t *testing.T) {
	dir := t.TempDir()
	if err := replaceFiles(dir, map[string][]byte{"a": []byte("1"), "deep/b": []byte("1"), "old": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	before, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := replaceFiles(dir, map[string][]byte{"a": []byte("2"), "deep/b": []byte("2"), "new": []byte("2")}); err != nil {
		t.Fatal(err)
	}
	after, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil || after == before {
		t.Errorf("the link leads to %s (%v), and led to %s before", after, err, before)
	}
	for path, want := range map[string]string{"a": "2", "deep/b": "2", "new": "2", "old": "", before: "", "..data_tmp": ""} {
		content, err := os.ReadFile(filepath.Join(dir, path)) //nolint:gosec // G304: a file of the test
		if string(content) != want || (err == nil) != (want != "") {
			t.Errorf("%s contains %q (%v), want %q", path, content, err, want)
		}
	}
	if link, err := os.Readlink(filepath.Join(dir, "a")); err != nil || link != "..data/a" {
		t.Errorf("a leads to %q (%v), want ..data/a", link, err)
	}
}

func TestMountPathsAreRewritten(t *testing.T) {
	m := mounts{{"/etc/tls/ca", "/tmp/2"}, {"/etc/tls", "/tmp/1"}}
	for text, want := range map[string]string{
		"/etc/tls":                       "/tmp/1",
		"/etc/tls/cert.pem":              "/tmp/1/cert.pem",
		"--cert=/etc/tls/cert.pem":       "--cert=/tmp/1/cert.pem",
		"/etc/tls/a:/etc/tls/ca/b":       "/tmp/1/a:/tmp/2/b",
		"/etc/tls2/cert.pem":             "/etc/tls2/cert.pem",
		"/host/etc/tls/cert.pem":         "/host/etc/tls/cert.pem",
		"https://example.com/etc/tls/ca": "https://example.com/etc/tls/ca",
		`{"path":"/etc/tls/a"}`:          `{"path":"/tmp/1/a"}`,
		`["/etc/tls","/etc/tls/ca"]`:     `["/tmp/1","/tmp/2"]`,
		"":                               "",
	} {
		if got := m.rewrite(text); got != want {
			t.Errorf("rewrite(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestRepositoryOmitsTagDigestAndDockerHub(t *testing.T) {
	for image, want := range map[string]string{
		"busybox":                                 "busybox",
		"docker.io/library/busybox:1.37":          "busybox",
		"cloudflare/cloudflared:2026.1.0":         "cloudflare/cloudflared",
		"registry:5000/group/name":                "registry:5000/group/name",
		"registry:5000/group/name:v1@sha256:0000": "registry:5000/group/name",
	} {
		if got := repository(image); got != want {
			t.Errorf("repository(%q) = %q, want %q", image, got, want)
		}
	}
}
