package certmanager

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// process is a program that was started.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
}

// run starts a program with further variables in its environment.
func run(program string, environment []string, arguments ...string) *process {
	GinkgoHelper()
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	Expect(command.Start()).To(Succeed())
	p := &process{command: command, exited: make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(p.exited)
	}()
	return p
}

// end ends the program in good order and waits for it.
func (p *process) end() {
	GinkgoHelper()
	_ = p.command.Process.Signal(syscall.SIGTERM)
	Eventually(p.exited, 20*time.Second).Should(BeClosed())
}

func startCertManager() {
	GinkgoHelper()
	certManager = run(certManagerProgram, []string{"KUBECONFIG=" + kubeconfig}, "-config="+certManagerConfig)
}

func stopCertManager() {
	GinkgoHelper()
	if certManager != nil {
		certManager.end()
		certManager = nil
	}
}
