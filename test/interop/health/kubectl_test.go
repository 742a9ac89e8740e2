package health

import (
	"os"
	"os/exec"

	"k8s.io/kubectl/pkg/cmd"
)

// kubectlVariable makes this program kubectl.
const kubectlVariable = "HEALTH_BE_KUBECTL"

// runKubectl is the main function of kubectl.
func runKubectl() {
	if err := cmd.NewDefaultKubectlCommand().Execute(); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// kubectl runs kubectl and returns what it printed.
func (w *world) kubectl(arguments ...string) (string, error) {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), os.Args[0], arguments...) // #nosec G702 -- this very program
	command.Env = append(os.Environ(), kubectlVariable+"=true", "KUBECONFIG="+w.kubeconfig, "HOME="+w.t.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}
