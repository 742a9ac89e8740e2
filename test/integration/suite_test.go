// Package integration runs the controller's binary against a real API server
// and the simulator of Cloudflare, and watches what becomes of the objects, the
// tunnel's document and the requests through the tunnel.
//
// What one decision gives belongs to internal/gateway's goldens; here is what
// only shows over time: pushes, statuses, restarts, faults.
package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "integration")
}

// What all specs share; each has objects, a controller and a simulator of its
// own.
var (
	kube       client.WithWatch
	kubeconfig string
	binary     string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	binary = filepath.Join(dir, "tunnel-gateway")
	arguments := []string{"build", "-o", binary}
	if raceDetector {
		arguments = append(arguments, "-race")
	}
	build := exec.CommandContext(ctx, "go", append(arguments, "github.com/tunnel-gateway/tunnel-gateway/cmd/tunnel-gateway")...)
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))

	control, err := cluster.Start(ctx, cluster.Options{Progress: os.Stderr})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(control.Stop)
	kubeconfig = filepath.Join(dir, "kubeconfig")
	Expect(control.Kubeconfig(kubeconfig)).To(Succeed())
	control.Config.QPS, control.Config.Burst = 1000, 1000
	kube, err = client.NewWithWatch(control.Config, client.Options{Scheme: manifest.Scheme()})
	Expect(err).NotTo(HaveOccurred())
})

// unique makes names that no other spec uses.
func unique(prefix string) string {
	return fmt.Sprintf("%s-%s", prefix, randomSuffix())
}
