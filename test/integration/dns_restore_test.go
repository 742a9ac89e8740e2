package integration

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

var _ = Describe("a backup of all objects that is restored in another cluster", records, func() {
	It("changes and deletes no record", func(ctx SpecContext) {
		env := newDNSEnvironment()
		env.start()
		g := env.serve("shared", "one.example.com", "two.example.com")
		Eventually(dnsCondition(g)).Should(Equal(published))
		env.waitUntilIdle(ctx)
		env.stop() // so that all further requests come from the other cluster
		before := env.database.Records(env.zone)
		Expect(before).To(HaveLen(2))

		By("restoring the objects, and also the key that marks the records")
		object := env.tunnelObject(g)
		copied := env.restore(ctx)
		Expect(copied.client.Delete(ctx, env.sectionRoute("shared", 1))).To(Succeed())
		env.cloudflare.ResetRequests()
		env.start("--kubeconfig=" + copied.identity)
		Eventually(env.zoneRequests).ShouldNot(BeEmpty())
		Eventually(copied.tunnelReady).WithArguments(ctx, object).Should(Equal("False OtherCluster"))
		expectUnchanged := func() {
			GinkgoHelper()
			Consistently(env.database.Records).WithArguments(env.zone).WithTimeout(3 * time.Second).Should(Equal(before))
			Expect(env.zoneWrites()).To(BeZero())
		}
		expectUnchanged()

		By("deleting the restored Gateway")
		Expect(copied.client.Delete(ctx, g)).To(Succeed())
		expectUnchanged()

		By("deleting also the restored Tunnel, and serving a name of the records with a new Gateway")
		Expect(copied.client.Delete(ctx, object)).To(Succeed())
		fresh, route := env.gateway("fresh", "one.example.com"), env.route("fresh", "web", gatewayParent("fresh"))
		Expect(copied.client.Create(ctx, fresh)).To(Succeed())
		Expect(copied.client.Create(ctx, route)).To(Succeed())
		Eventually(copied.gatewayCondition).WithArguments(ctx, fresh, dnsReady).Should(Equal("False RecordConflict"))
		Expect(copied.gatewayCondition(ctx, fresh, "tunnelgateway.dev/ConnectorsReady")).To(HavePrefix("True "))
		expectUnchanged()
		Expect(env.request("one.example.com")).To(Equal("web"))
	})
})

// copiedCluster is a second cluster with copies of objects.
type copiedCluster struct {
	client   client.Client
	identity string // path to the controller's kubeconfig
}

// restoredKind is a kind of objects in a namespace, which a backup has.
type restoredKind struct{ version, kind, namespace string }

// restore starts a second cluster, and creates the environment's objects in it as a backup
// program does: with their statuses, and with new UIDs.
func (env *environment) restore(ctx context.Context, more ...restoredKind) copiedCluster {
	GinkgoHelper()
	control, err := cluster.Start(ctx, cluster.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		env.stopAll() // before the cluster
		Expect(control.Stop()).To(Succeed())
	})
	c := copiedCluster{identity: filepath.Join(GinkgoT().TempDir(), "identity")}
	_, err = cluster.ControllerIdentity(ctx, control.Config, "../../config/rbac", c.identity)
	Expect(err).NotTo(HaveOccurred())
	c.client, err = client.New(control.Config, client.Options{Scheme: newScheme()})
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{env.namespace, env.controllerNamespace} {
		Expect(c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	Expect(cluster.ControllerRoles(ctx, c.client, "../../config/rbac", env.controllerNamespace)).To(Succeed())
	env.runPods(c.client)
	c.add(ctx, newObject(gatewayAPI, "GatewayClass", "", env.className), newObject("v1", "Secret", env.controllerNamespace, signingKey))
	for _, kind := range append([]restoredKind{
		{"v1", "Service", env.namespace}, {projectAPI, "TunnelConfiguration", env.controllerNamespace}, {projectAPI, "Tunnel", env.controllerNamespace},
		{gatewayAPI, "Gateway", env.namespace}, {gatewayAPI, "HTTPRoute", env.namespace},
	}, more...) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kind.version)
		list.SetKind(kind.kind + "List")
		Expect(kube.List(ctx, list, client.InNamespace(kind.namespace))).To(Succeed())
		Expect(list.Items).NotTo(BeEmpty(), kind.kind)
		for i := range list.Items {
			c.add(ctx, &list.Items[i])
		}
	}
	return c
}

// add creates copies of objects in the first cluster.
func (c copiedCluster) add(ctx context.Context, originals ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, original := range originals {
		object := latest(original).DeepCopy()
		status, hasStatus := object.Object["status"]
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(object.Object, "spec", field)
		}
		Expect(c.client.Create(ctx, object)).To(Succeed())
		if hasStatus && object.GetKind() != "Service" {
			object.Object["status"] = status
			Expect(c.client.Status().Update(ctx, object)).To(Succeed())
		}
	}
}

// tunnelReady returns the condition Ready of the Tunnel, or "no Tunnel".
func (c copiedCluster) tunnelReady(ctx context.Context, object *v1alpha1.Tunnel) string {
	found := object.DeepCopy()
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return err.Error()
	}
	return formatCondition(found.Status.Conditions, "Ready")
}

// gatewayCondition returns a condition of the Gateway as "Status Reason", or an error.
func (c copiedCluster) gatewayCondition(ctx context.Context, g *gatewayv1.Gateway, kind string) string {
	found := g.DeepCopy()
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(g), found); err != nil {
		return err.Error()
	}
	return formatCondition(found.Status.Conditions, kind)
}
