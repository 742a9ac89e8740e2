package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPodNamespaceIsReadFromTheServiceAccount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if got, err := podNamespace(file); got != "" || err != nil {
		t.Errorf("outside a cluster: podNamespace = %q, %v; want none", got, err)
	}
	if err := os.WriteFile(file, []byte("gateways\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := podNamespace(file); got != "gateways" || err != nil {
		t.Errorf("in a pod: podNamespace = %q, %v; want gateways", got, err)
	}
	if got, err := podNamespace(filepath.Dir(file)); err == nil {
		t.Errorf("unreadable file: podNamespace = %q, want an error", got)
	}
}
