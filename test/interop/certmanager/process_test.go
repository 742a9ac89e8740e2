package certmanager

import (
	"os"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// startCertManager starts cert-manager's controllers.
func startCertManager() {
	GinkgoHelper()
	command := exec.Command(certManagerBinary, "-config="+certManagerConfigFile)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	var err error
	certManager, err = controllerproc.Run(command)
	Expect(err).NotTo(HaveOccurred())
}

// stopCertManager stops cert-manager's controllers if they are running.
func stopCertManager() {
	GinkgoHelper()
	if certManager != nil {
		Expect(certManager.Stop()).To(Succeed())
		certManager = nil
	}
}
