package envoy

import "testing"

// Envoy resolves path segments before it merges slashes: ".." removes an empty segment.
// The expected paths come from Envoy 1.40.0.
func TestNormalizePath(t *testing.T) {
	for path, expected := range map[string]string{
		"/a//../b":        "/a/b",
		"/a/b//..":        "/a/b/",
		"/a/x//y/../../z": "/a/x/z",
		"//a":             "/a",
		"/a/%2E%2e/b":     "/b",
		"/%2e%2e":         "/",
		"/a/.":            "/a/",
		"/a/...":          "/a/...",
		"/a/..%2fb":       "/a/..%2Fb",
		"/%7E%41":         "/~A",
	} {
		if got, err := normalizePath(path); err != nil || got != expected {
			t.Errorf("normalizePath(%q) = %q, %v; Envoy has %q", path, got, err, expected)
		}
	}
}
