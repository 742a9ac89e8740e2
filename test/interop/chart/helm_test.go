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

// update rewrites what is made from the chart. Read the diff before you commit
// it.
var update = flag.Bool("update", false, "rewrite the golden files, config and the chart's README")

// helmProgram builds Helm, unless Go has it already.
var helmProgram = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("go", "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(path)), err
})

// helm runs Helm and returns what it prints, errors last.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	program, err := helmProgram()
	if err != nil {
		t.Fatalf("building Helm: %v", err)
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), program, arguments...)
	home := filepath.Join(os.TempDir(), "tunnel-gateway-helm")
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String() + stderr.String(), err
}

// mustHelm runs Helm, which has to succeed.
func mustHelm(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := helm(t, arguments...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out
}

// render returns the manifests of the chart.
func render(t *testing.T, arguments ...string) string {
	t.Helper()
	return mustHelm(t, append([]string{"template", release, chartDir, "--namespace", namespace}, arguments...)...)
}

// compare holds got against the file, or rewrites the file.
func compare(t *testing.T, path, got string) {
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
		t.Fatalf("%v; make golden writes it", err)
	}
	if diff := diffLines(string(want), got); diff != "" {
		t.Errorf("%s is not up to date; make golden rewrites it (-it +as it should be):\n%s", path, diff)
	}
}
