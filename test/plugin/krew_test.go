package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tool returns the path of a tool in go.mod, which Go builds if necessary.
func tool(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	output, err := exec.CommandContext(ctx, "go", "tool", "-n", name).Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(output))
}

// programs returns a directory with kubectl and its plugin krew.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for name, program := range map[string]string{"kubectl": self, "kubectl-krew": tool(t.Context(), t, "krew")} {
		if err := os.Symlink(program, filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// run runs a program with no other variables than these and a PATH that begins with the
// directories, and returns its output.
func run(t *testing.T, directories []string, environment []string, program string, arguments ...string) (string, error) {
	t.Helper()
	t.Setenv("PATH", strings.Join(append(directories, os.Getenv("PATH")), ":"))
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Env = append(environment, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir())
	output, err := command.CombinedOutput()
	return string(output), err
}

// krew installs the archive of every platform, not only of this machine's.
func TestKrewAcceptsTheManifest(t *testing.T) {
	manifest := filepath.Join(release(t), "tunnel-gateway.yaml")
	output, err := run(t, []string{programs(t)}, nil, tool(t.Context(), t, "validate-krew-manifest"), "-manifest", manifest)
	if err != nil || !strings.Contains(output, "all 6 spec.platforms installed fine") {
		t.Fatalf("error %v\n%s", err, output)
	}
}

func TestKrewRefusesAnotherArchive(t *testing.T) {
	directory := release(t)
	content, err := os.ReadFile(filepath.Join(directory, "tunnel-gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "tunnel-gateway.yaml")
	other := strings.ReplaceAll(string(content), "_amd64.tar.gz", "_arm64.tar.gz")
	if err := os.WriteFile(changed, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := run(t, []string{programs(t)}, nil, tool(t.Context(), t, "validate-krew-manifest"), "-manifest", changed)
	if err == nil || !strings.Contains(output, "checksum does not match") {
		t.Errorf("error %v\n%s", err, output)
	}
}

// A user installs the plugin with krew, and runs it with kubectl.
func TestKubectlRunsTheInstalledPlugin(t *testing.T) {
	manifest := filepath.Join(release(t), "tunnel-gateway.yaml")
	krewRoot, path := t.TempDir(), programs(t)
	bin := filepath.Join(krewRoot, "bin")
	kubectl := func(arguments ...string) (string, error) {
		return run(t, []string{path, bin}, []string{"KREW_ROOT=" + krewRoot, "KUBECONFIG=/dev/null"}, filepath.Join(path, "kubectl"), arguments...)
	}
	if output, err := kubectl("krew", "install", "--manifest", manifest); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := os.Symlink("kubectl-tunnel_gateway", filepath.Join(bin, "kubectl_complete-tunnel_gateway")); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"version":              {[]string{"tunnel-gateway", "version"}, "tunnel-gateway " + version + "\n"},
		"help":                 {[]string{"tunnel-gateway", "--help"}, "\n  kubectl tunnel-gateway [command]\n"},
		"help of a command":    {[]string{"tunnel-gateway", "plan", "--help"}, "\n  kubectl tunnel-gateway plan [flags]\n"},
		"with an underscore":   {[]string{"tunnel_gateway", "--help"}, "\n  kubectl tunnel-gateway [command]\n"},
		"the list of plugins":  {[]string{"plugin", "list"}, filepath.Join(bin, "kubectl-tunnel_gateway") + "\n"},
		"completion":           {[]string{"__complete", "tunnel-gateway", "pl"}, "plan\t"},
		"completion of values": {[]string{"__complete", "tunnel-gateway", "plan", "--output", "js"}, "json\n"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := kubectl(test.arguments...)
			if err != nil || !strings.Contains(output, test.want) {
				t.Errorf("error %v, output without %q:\n%s", err, test.want, output)
			}
		})
	}
}

// A user unpacks the archive, without krew.
func TestUnpackedPluginRuns(t *testing.T) {
	archive := filepath.Join(release(t), archives()[runtime.GOOS+"_"+runtime.GOARCH])
	directory := t.TempDir()
	if output, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", directory).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	output, err := run(t, []string{directory, programs(t)}, nil, "kubectl-tunnel_gateway", "version")
	if err != nil || !strings.HasPrefix(output, "tunnel-gateway "+version+"\n") {
		t.Errorf("error %v, output:\n%s", err, output)
	}
}
