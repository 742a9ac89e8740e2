package integration

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// start starts the controller with additional flags.
func (env *environment) start(arguments ...string) {
	GinkgoHelper()
	env.process = env.startProcess(arguments...)
}

// stop stops the controller as a rollout does, and waits until it has exited.
func (env *environment) stop() {
	GinkgoHelper()
	if env.process == nil {
		return
	}
	Expect(env.process.Stop()).To(Succeed())
	env.process = nil
}

// startProcess starts one more controller, without stopping the others.
func (env *environment) startProcess(arguments ...string) *controllerproc.Process {
	GinkgoHelper()
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: binary, Kubeconfig: controllerKubeconfig, ControllerNamespace: env.controllerNamespace, ClusterID: env.namespace, Cloudflare: env.apiURL,
		Flags: append([]string{"--controller-name=" + env.controllerName, "--retirement-delay=1s"}, arguments...), Output: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	env.processes = append(env.processes, p)
	return p
}

// startReplica starts one more controller with leader election and additional
// flags.
func (env *environment) startReplica(arguments ...string) *controllerproc.Process {
	GinkgoHelper()
	return env.startProcess(append([]string{"--leader-election=true"}, arguments...)...)
}

// stopAll stops all controllers in the environment.
func (env *environment) stopAll() {
	GinkgoHelper()
	var errs []error
	for _, p := range env.processes {
		errs = append(errs, p.Stop())
	}
	Expect(errors.Join(errs...)).To(Succeed())
}
