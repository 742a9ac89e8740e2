package health

import (
	"os"
	"os/exec"

	"k8s.io/kubectl/pkg/cmd"
)

// kubectlVariable is the environment variable that makes the test binary run kubectl.
const kubectlVariable = "HEALTH_RUN_KUBECTL"

// runKubectl runs kubectl and exits.
func runKubectl() {
	if err := cmd.NewDefaultKubectlCommand().Execute(); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// kubectl runs kubectl in a child process and returns its output.
func (e *environment) kubectl(arguments ...string) (string, error) {
	e.t.Helper()
	command := exec.CommandContext(e.t.Context(), os.Args[0], arguments...) // #nosec G702 -- the path of the test binary
	command.Env = append(os.Environ(), kubectlVariable+"=true", "KUBECONFIG="+e.kubeconfig, "HOME="+e.t.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}
