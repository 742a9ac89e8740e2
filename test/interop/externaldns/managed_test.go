package externaldns

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// The second installation, which manages records.
const (
	managedName      = "tunnelgateway.dev/managed"
	managedNamespace = "managed-system"
	managedClusterID = "managed"
)

// separated makes external-dns ignore the Gateways that [labeledGateway] does not return.
const separated = "--gateway-label-filter=records=external-dns"

// managedTimeout is how long the second installation may take for a change. Deletions wait
// for one read of the zone per minute.
const managedTimeout = 2 * time.Minute

// classManifest is the GatewayClass of an environment whose records the second installation
// manages.
const classManifest = `
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: PLATFORM, namespace: managed-system}
spec:
  connector: {replicas: 1, readyDelay: 0s}
  dns: {mode: MODE, zones: [{name: ZONE}], deletionDelay: 1s, exclude: [EXCLUDED]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: PLATFORM}
spec:
  controllerName: tunnelgateway.dev/managed
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: PLATFORM, namespace: managed-system}
`

// startSecondInstallation starts a controller that manages records, and a replacement for
// kubelets that makes its connectors ready.
func startSecondInstallation(ctx context.Context, kubeconfig string) {
	GinkgoHelper()
	Expect(kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managedNamespace}})).To(Succeed())
	p, err := controllerproc.Start(controllerproc.Options{
		Binary: controllerBinary, Kubeconfig: kubeconfig, ControllerNamespace: managedNamespace, ClusterID: managedClusterID, Cloudflare: apiURL,
		AccountID: accountID, Flags: []string{"--controller-name=" + managedName, "--retirement-delay=1s"}, Output: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Stop)
	pods, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(pods, markPodsReady, 200*time.Millisecond)
	})
	DeferCleanup(func() {
		stop()
		running.Wait()
	})
}

// markPodsReady ignores errors, because the next call repeats it.
func markPodsReady(ctx context.Context) {
	var list corev1.PodList
	_ = kube.List(ctx, &list, client.InNamespace(managedNamespace))
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase == corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_ = kube.Status().Update(ctx, pod)
	}
}

// setMode sets the second installation's mode for the zone, and the excluded hostnames.
func (e *environment) setMode(mode string, excluded ...string) {
	GinkgoHelper()
	e.apply(strings.NewReplacer("MODE", mode, "EXCLUDED", strings.Join(excluded, ", ")).Replace(classManifest))
}

// managedGateway returns the Gateway "managed" of the second installation.
func managedGateway(listeners ...string) string {
	return strings.ReplaceAll(gateway("PLATFORM/managed", listeners...), "gatewayClassName: cloudflare-tunnel", "gatewayClassName: PLATFORM")
}

// labeledGateway returns a Gateway with the label that external-dns selects.
func labeledGateway(name string, listeners ...string) string {
	return strings.ReplaceAll(gateway(name, listeners...), "metadata: {", "metadata: {labels: {records: external-dns}, ")
}

// managedTarget waits until the tunnel of the Gateway "managed" exists, and returns its
// address.
func (e *environment) managedTarget() string {
	GinkgoHelper()
	return e.tunnelIDIn(managedClusterID, "managed") + ".cfargotunnel.com"
}

// dnsReady returns the condition DNSReady of the Gateway "managed" as "Status Reason".
func (e *environment) dnsReady() string {
	c := meta.FindStatusCondition(e.status("Gateway", "PLATFORM/managed").Conditions, "tunnelgateway.dev/DNSReady")
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

// stored returns the zone's record with the name that is no TXT record.
func (e *environment) stored(name string) zones.Record {
	GinkgoHelper()
	all := database.Records(e.dns.ids[0])
	i := slices.IndexFunc(all, func(r zones.Record) bool { return r.Name == e.expand(name) && r.Type != "TXT" })
	Expect(i).To(BeNumerically(">=", 0), "%s has no record", name)
	return all[i]
}

// comment returns a record's comment.
func (e *environment) comment(name string) string {
	GinkgoHelper()
	return e.stored(name).Comment
}

// adopt runs the command that makes the second installation adopt records.
func (e *environment) adopt(ctx context.Context, names ...string) {
	GinkgoHelper()
	arguments := []string{"dns", "adopt", "--yes", "--gateway", e.expand("PLATFORM/managed"), "--kubeconfig", adminKubeconfig,
		"--controller-name", managedName, "--controller-namespace", managedNamespace}
	for _, name := range names {
		arguments = append(arguments, e.expand(name))
	}
	command := exec.CommandContext(ctx, controllerBinary, arguments...)
	command.Env = append(os.Environ(), "CLOUDFLARE_API_TOKEN=administrator", "CLOUDFLARE_ACCOUNT_ID="+accountID, "CLOUDFLARE_BASE_URL="+apiURL)
	var output bytes.Buffer
	command.Stdout, command.Stderr = io.MultiWriter(&output, GinkgoWriter), io.MultiWriter(&output, GinkgoWriter)
	Expect(command.Run()).To(Succeed(), "dns adopt: %s", &output)
}

// delayRecords makes the nameservers notice each change after a random time below the limit,
// until the spec ends.
func delayRecords(limit time.Duration) {
	recordDelay.Store(int64(limit))
	DeferCleanup(func() {
		recordDelay.Store(0)
		database.Settle()
	})
}

// recordDelay is the limit that delayRecords sets.
var recordDelay atomic.Int64

// nextDelay returns how long the nameservers take to notice a change.
func nextDelay() time.Duration {
	if limit := time.Duration(recordDelay.Load()); limit > 0 {
		return zones.RandomDelay(limit)()
	}
	return 0
}

// keepLookingUp looks the name up all the time. The returned function stops that, and fails
// unless every lookup has led to the target.
func (e *environment) keepLookingUp(name, target string) (check func()) {
	database.Settle()
	name = e.expand(name)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	lookups, failures, first := 0, 0, zones.Answer{}
	running.Go(func() {
		wait.UntilWithContext(ctx, func(context.Context) {
			answer := database.Lookup(name)
			proxied := len(answer.Steps) > 0 && answer.Steps[0].Proxied()
			if lookups++; answer.Outcome != zones.Found || answer.Target != target || !proxied {
				if failures++; failures == 1 {
					first = answer
				}
			}
		}, time.Millisecond)
	})
	DeferCleanup(stop)
	return func() {
		GinkgoHelper()
		Eventually(database.Pending).Should(BeZero())
		stop()
		running.Wait()
		Expect(failures).To(BeZero(), "of %d lookups; the first: %+v", lookups, first)
		Expect(lookups).To(BeNumerically(">", 100))
	}
}
