package binaries

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unavailable are releases that cannot be downloaded.
var unavailable = releases{index: "http://127.0.0.1:1/index.yaml", limit: defaultReleases.limit}

func TestInstalledProgramsAreNotBuilt(t *testing.T) {
	m := newMachine(t)
	want := map[string]string{
		APIServer:         m.kubernetes(m.assets, APIServer, "1.36.0"),
		ControllerManager: m.kubernetes(m.assets, ControllerManager, "1.36.9"),
		Etcd:              m.etcd(m.path, "3.6.1"),
	}
	got, output := m.find(unavailable)
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	checkOutput(t, output,
		"kube-apiserver: from KUBEBUILDER_ASSETS ("+want[APIServer]+")",
		"etcd: not in KUBEBUILDER_ASSETS ("+m.assets+")",
		"etcd: from the PATH ("+want[Etcd]+")",
	)
}

func TestOnlyMissingProgramsAreBuilt(t *testing.T) {
	m := newMachine(t)
	m.kubernetes(m.assets, APIServer, "1.36.0")
	m.etcd(m.assets, "3.6.1")
	_, output := m.find(unavailable)
	if got := built(output); !slices.Equal(got, []string{ControllerManager}) {
		t.Errorf("built %v, want only %s", got, ControllerManager)
	}
	checkOutput(t, output, "building kube-controller-manager v1.36.3 from source (about five minutes, once per machine)")
	if strings.Contains(output, "downloading") {
		t.Error("a download started although no release contains the missing program")
	}
	if _, output = m.find(unavailable); built(output) != nil {
		t.Errorf("the second call built %v again", built(output))
	}
	checkOutput(t, output, "kube-controller-manager: from the cache (")
}

func TestUnsupportedProgramsAreSkipped(t *testing.T) {
	for name, test := range map[string]struct {
		install func(*machine)
		built   []string
		output  string
	}{
		"an older API server": {
			func(m *machine) { m.kubernetes(m.assets, APIServer, "1.35.9") }, []string{APIServer},
			"its version is 1.35.9, but version 1.36 or 1.37 is required",
		},
		"an API server that is too new": {
			func(m *machine) { m.kubernetes(m.assets, APIServer, "1.38.0") }, []string{APIServer},
			"its version is 1.38.0, but version 1.36 or 1.37 is required",
		},
		"a newer controller manager": {
			func(m *machine) { m.kubernetes(m.assets, ControllerManager, "1.37.0") }, []string{ControllerManager},
			"its version is 1.37.0, but version 1.36 is required",
		},
		"a control plane of the next version": {
			func(m *machine) {
				m.kubernetes(m.assets, APIServer, "1.37.0")
				m.kubernetes(m.assets, ControllerManager, "1.37.0")
			}, nil, "kube-apiserver: from KUBEBUILDER_ASSETS (",
		},
		"a newer etcd": {
			func(m *machine) { m.etcd(m.assets, "4.0.0") }, []string{Etcd},
			"its version is 4.0.0, but version 3.6 or 3.7 is required",
		},
		"a program that is not executable": {
			func(m *machine) { check(m.t, os.Chmod(filepath.Join(m.assets, Etcd), 0o600)) }, []string{Etcd},
			"etcd: skipped the program from KUBEBUILDER_ASSETS: ",
		},
		"a program that fails": {
			func(m *machine) { m.install(m.assets, Etcd, "echo no library >&2; exit 127") }, []string{Etcd}, "no library",
		},
		"a program without a version": {
			func(m *machine) { m.install(m.assets, Etcd, "echo etcd") }, []string{Etcd}, "prints no version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.kubernetes(m.assets, APIServer, "1.36.0")
			m.kubernetes(m.assets, ControllerManager, "1.36.0")
			m.etcd(m.assets, "3.6.1")
			test.install(m)
			_, output := m.find(unavailable)
			if got := built(output); !slices.Equal(got, test.built) {
				t.Errorf("built %v, want %v", got, test.built)
			}
			checkOutput(t, output, test.output)
		})
	}
}

// TestPinnedBinariesIgnoreTheMachine provides programs in every place that CI
// ignores.
func TestPinnedBinariesIgnoreTheMachine(t *testing.T) {
	m := newMachine(t)
	t.Setenv(pinnedVariable, "true")
	for _, dir := range []string{m.assets, m.path} {
		m.kubernetes(dir, APIServer, "1.36.0")
		m.kubernetes(dir, ControllerManager, "1.36.0")
		m.etcd(dir, "3.6.1")
	}
	server := newReleaseServer(t)
	_, output := m.find(server.releases())
	if got := built(output); len(got) != len(controlPlane) {
		t.Errorf("built %v, want all programs", got)
	}
	if got := server.requests.Load(); got != 0 {
		t.Errorf("sent %d requests for releases", got)
	}
}

func TestMisspelledPinnedBinariesIsAnError(t *testing.T) {
	newMachine(t)
	t.Setenv(pinnedVariable, "ture")
	_, err := search{t.Output(), unavailable}.controlPlane(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), `PINNED_BINARIES is "ture"; set it to true or false`) {
		t.Errorf("got error %v", err)
	}
}

func checkOutput(t *testing.T, output string, want ...string) {
	t.Helper()
	for _, line := range want {
		if !strings.Contains(output, line) {
			t.Errorf("got output\n%s\nwant %q", output, line)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
