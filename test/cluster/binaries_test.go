package cluster_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// TestInstalledProgramsAreNotBuilt provides all programs in KUBEBUILDER_ASSETS, and
// a `go` command that cannot build.
func TestInstalledProgramsAreNotBuilt(t *testing.T) {
	expectedToFail(t, "every program is built from source", func() (failures []string) {
		root, err := filepath.Abs("../..")
		if err != nil {
			t.Fatal(err)
		}
		tools, assets := t.TempDir(), t.TempDir()
		writeScript(t, filepath.Join(tools, "go"), `[ "$1" = list ] && echo `+root)
		for program, version := range map[string]string{
			"kube-apiserver": "Kubernetes v1.36.0", "kube-controller-manager": "Kubernetes v1.36.0", "etcd": "etcd Version: 3.6.0",
		} {
			writeScript(t, filepath.Join(assets, program), "echo "+version)
		}
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		t.Setenv("KUBEBUILDER_ASSETS", assets)
		t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
		if _, err := cluster.Binaries(t.Context(), t.Output()); err != nil {
			failures = append(failures, err.Error())
		}
		return failures
	})
}

func writeScript(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
