package integration

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

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
	Expect(w.process.Stop()).To(Succeed())
	w.process = nil
}

// launch runs one more controller beside those that run.
func (w *world) launch(arguments ...string) *controllerproc.Process {
	GinkgoHelper()
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: binary, Kubeconfig: identity, ControllerNamespace: w.system, ClusterID: w.namespace, Cloudflare: w.api,
		Flags: append([]string{"--controller-name=" + w.controller, "--retirement-delay=1s"}, arguments...), Output: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	w.launched = append(w.launched, p)
	return p
}

// launchReplica runs one more controller, of which only the leader works; further
// arguments add to its flags.
func (w *world) launchReplica(arguments ...string) *controllerproc.Process {
	GinkgoHelper()
	return w.launch(append([]string{"--leader-election=true"}, arguments...)...)
}

// endAll ends all controllers of the world.
func (w *world) endAll() {
	GinkgoHelper()
	var errs []error
	for _, p := range w.launched {
		errs = append(errs, p.Stop())
	}
	Expect(errors.Join(errs...)).To(Succeed())
}
