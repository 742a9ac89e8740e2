package node

import "testing"

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
