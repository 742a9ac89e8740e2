package chart

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	root      = "../../.."
	chartDir  = root + "/charts/tunnel-gateway"
	release   = "tunnel-gateway"
	namespace = "tunnel-gateway"
)

// update makes the tests rewrite the files that are generated from the chart.
// Read the diff before you commit it.
var update = flag.Bool("update", false, "rewrite the golden files, config and the chart's README")

// helmProgram builds Helm, unless it is in Go's build cache, and returns its path.
var helmProgram = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("go", "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(path)), err
})

// helm runs Helm and returns its standard output, followed by its standard error.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	program, err := helmProgram()
	if err != nil {
		t.Fatalf("build Helm: %v", err)
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), program, arguments...)
	home := filepath.Join(os.TempDir(), "tunnel-gateway-helm")
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String() + stderr.String(), err
}

// mustHelm runs Helm and fails the test if Helm fails.
func mustHelm(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := helm(t, arguments...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out
}

// render returns the manifests that the chart renders.
func render(t *testing.T, arguments ...string) string {
	t.Helper()
	return mustHelm(t, append([]string{"template", release, chartDir, "--namespace", namespace}, arguments...)...)
}

// compareGolden compares got with the file, or rewrites the file under -update.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run make golden to write it", err)
	}
	if diff := diffLines(string(want), got); diff != "" {
		t.Errorf("%s is out of date; run make golden to update it (-file +rendered):\n%s", path, diff)
	}
}
