package integration

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// process is a controller that was started.
type process struct {
	command *exec.Cmd
	exited  chan struct{}
}

// start runs the controller; further arguments add to its flags.
func (w *world) start(arguments ...string) {
	GinkgoHelper()
	w.process = w.launch(arguments...)
}

// stop ends the controller as a rollout would, and waits for it.
func (w *world) stop() {
	GinkgoHelper()
	if w.process == nil {
		return
	}
	w.process.end(syscall.SIGTERM)
	w.process = nil
}

// launch runs one more controller beside those that run.
func (w *world) launch(arguments ...string) *process {
	GinkgoHelper()
	command := exec.Command(binary, append([]string{
		"controller", "--kubeconfig=" + identity, "--controller-name=" + w.controller,
		"--cluster-id=" + w.namespace, "--leader-election=false", "--metrics-address=0", "--health-address=0",
	}, arguments...)...)
	command.Env = append(os.Environ(),
		"CLOUDFLARE_ACCOUNT_ID=account", "CLOUDFLARE_API_TOKEN=token", "CLOUDFLARE_BASE_URL="+w.api)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	Expect(command.Start()).To(Succeed())
	p := &process{command: command, exited: make(chan struct{})}
	w.launched = append(w.launched, p)
	go func() {
		_ = command.Wait()
		close(p.exited)
	}()
	return p
}

// launchReplica runs one more controller, of which only the leader works; further
// arguments add to its flags. The
// Lease is the one that the controller is allowed to have.
func (w *world) launchReplica(arguments ...string) *process {
	GinkgoHelper()
	return w.launch(append([]string{"--leader-election=true", "--leader-election-namespace=" + cluster.ControllerNamespace}, arguments...)...)
}

// endAll ends all controllers of the world.
func (w *world) endAll() {
	GinkgoHelper()
	for _, p := range w.launched {
		p.end(syscall.SIGTERM)
	}
}

// end sends the signal and waits for the process to end.
func (p *process) end(signal os.Signal) {
	GinkgoHelper()
	_ = p.command.Process.Signal(signal)
	Eventually(p.exited, 20*time.Second).Should(BeClosed())
}

// kill ends the process on the spot. It may be called in any goroutine.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}
