package integration

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// start starts the controller with additional flags.
func (w *world) start(arguments ...string) {
	GinkgoHelper()
	w.process = w.launch(arguments...)
}

// stop stops the controller as a rollout does, and waits until it has exited.
func (w *world) stop() {
	GinkgoHelper()
	if w.process == nil {
		return
	}
	Expect(w.process.Stop()).To(Succeed())
	w.process = nil
}

// startProcess starts one more controller, without stopping the others.
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

// startReplica starts one more controller with leader election and additional
// flags.
func (w *world) launchReplica(arguments ...string) *controllerproc.Process {
	GinkgoHelper()
	return w.launch(append([]string{"--leader-election=true"}, arguments...)...)
}

// stopAll stops all controllers of the environment.
func (w *world) endAll() {
	GinkgoHelper()
	var errs []error
	for _, p := range w.launched {
		errs = append(errs, p.Stop())
	}
	Expect(errors.Join(errs...)).To(Succeed())
}
