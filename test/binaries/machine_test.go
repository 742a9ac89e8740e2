package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a machine with an empty cache. `go list` finds this repository, and
// `go build` writes a program that prints the pinned version.
type machine struct {
	t      *testing.T
	path   string // the only folder in the PATH apart from the system's
	assets string // KUBEBUILDER_ASSETS
}

// The pinned versions in the tests.
const (
	pinnedKubernetes = "1.36.3"
	pinnedEtcd       = "3.6.8"
)

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t, t.TempDir(), t.TempDir()}
	repository := t.TempDir()
	nested := filepath.Join(repository, filepath.FromSlash(controlPlaneModule))
	if err := os.MkdirAll(nested, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(nested, "go.mod"), "module m\nrequire (\n"+kubernetesModule+" v"+pinnedKubernetes+"\n"+etcdModule+" v"+pinnedEtcd+"\n)\n")
	m.install(m.path, "go", `
case $1 in
list) echo `+repository+` ;;
build)
	while [ "$1" != -o ]; do shift; done
	printf '#!/bin/sh\necho v`+pinnedKubernetes+`\n' >"$2"
	chmod +x "$2" ;;
esac`)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", m.path+":/usr/bin:/bin")
	t.Setenv(assetsVariable, m.assets)
	t.Setenv(pinnedVariable, "")
	t.Setenv(envoyVariable, "")
	return m
}

// install writes an executable script to a folder.
func (m *machine) install(dir, name, script string) string {
	m.t.Helper()
	path := filepath.Join(dir, name)
	writeFile(m.t, path, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil { // #nosec G302 -- a script
		m.t.Fatal(err)
	}
	return path
}

// kubernetes installs a Kubernetes program that prints a version.
func (m *machine) kubernetes(dir, name, version string) string {
	return m.install(dir, name, "echo Kubernetes v"+version)
}

// etcd installs etcd.
func (m *machine) etcd(dir, version string) string {
	return m.install(dir, Etcd, `printf 'etcd Version: `+version+`\nGo Version: go1.26.8\n'`)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// find looks for all control plane programs, and returns their paths and the output.
func (m *machine) find(r releases) (map[string]string, string) {
	m.t.Helper()
	var output strings.Builder
	paths, err := search{&output, r}.controlPlane(m.t.Context(), []string{APIServer, ControllerManager, Etcd})
	if err != nil {
		m.t.Fatalf("%v\n%s", err, &output)
	}
	m.t.Log(output.String())
	return paths, output.String()
}

// built returns the names of the programs that were built from source.
func built(output string) (names []string) {
	for _, name := range []string{APIServer, ControllerManager, Etcd} {
		if strings.Contains(output, "building "+name+" v") {
			names = append(names, name)
		}
	}
	return names
}
