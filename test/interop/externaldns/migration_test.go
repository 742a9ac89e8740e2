package externaldns

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	networkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/util/cert"
)

// ingressPermissions are the permissions that the commands in the guide add.
const ingressPermissions = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: external-dns-ingresses}
rules:
- {apiGroups: [networking.k8s.io], resources: [ingresses], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: external-dns-ingresses}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: external-dns-ingresses}
subjects: [{kind: ServiceAccount, name: external-dns, namespace: external-dns}]
`

const ingressSource = "--source=ingress"

var _ = Describe("the migration from Ingress", func() {
	It("moves each record to the tunnel and back in one request", func(ctx SpecContext) {
		e := &environment{platform: "platform"}
		e.addZones("foo.com", "bar.com")
		e.apply(ingressPermissions)
		applySamples("migration/00-existing.yaml")
		applySamples("migration/before/*.yaml")
		address := func(team string, proxied bool) string {
			return record{team + ".com", "A", "192.0.2.10", proxied}.String()
		}
		for _, team := range []string{"foo", "bar"} {
			setIngressAddress(ctx, team, "192.0.2.10")
			createCertificate(ctx, team, team+"-tls")
		}
		e.expectCNAMEs([]string{address("foo", false), address("bar", false)}, ingressSource, "!--cloudflare-proxied")
		e.expectCNAMEs([]string{address("foo", true), address("bar", true)}, ingressSource)

		By("applying the new objects, over which the Ingresses take precedence")
		applySamples("migration/[123]0-*.yaml")
		Eventually(e.routeAcceptance("HTTPRoute", "foo/foo-foo-com", "foo")).Should(Equal(accepted))
		Eventually(e.routeAcceptance("HTTPRoute", "bar/bar-bar-com", "bar")).Should(Equal(accepted))
		Eventually(e.setAcceptance("foo/foo")).Should(Equal(accepted))
		Eventually(e.setAcceptance("bar/bar")).Should(Equal(accepted))
		writes := e.dns.writeCount()
		e.expectCNAMEs([]string{address("foo", true), address("bar", true)}, ingressSource)
		Expect(e.dns.writeCount()).To(Equal(writes))

		By("making external-dns ignore one Ingress, and reverting the change")
		tunnel := e.tunnelTarget("parent")
		setControllerAnnotation(ctx, "foo", `"none"`)
		e.expectCNAMEs(append(e.cnames(tunnel, "foo.com"), address("bar", true)), ingressSource)
		Expect(e.dns.writeCount()).To(Equal(writes + 1))
		setControllerAnnotation(ctx, "foo", "null")
		e.expectCNAMEs([]string{address("foo", true), address("bar", true)}, ingressSource)
		Expect(e.dns.writeCount()).To(Equal(writes + 2))

		By("making external-dns ignore both Ingresses, and deleting them")
		setControllerAnnotation(ctx, "foo", `"none"`)
		setControllerAnnotation(ctx, "bar", `"none"`)
		e.expectCNAMEs(e.cnames(tunnel, "foo.com", "bar.com"), ingressSource)
		writes = e.dns.writeCount()
		for _, team := range []string{"foo", "bar"} {
			Expect(ingressClient(team).Delete(ctx, team, metav1.DeleteOptions{})).To(Succeed())
		}
		e.expectCNAMEs(e.cnames(tunnel, "foo.com", "bar.com"), ingressSource)
		e.expectCNAMEs(e.cnames(tunnel, "foo.com", "bar.com"))
		Expect(e.dns.writeCount()).To(Equal(writes))
	})
})

// setIngressAddress sets the address in the Ingress's status like an ingress controller.
func setIngressAddress(ctx context.Context, team, address string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
	patchIngress(ctx, team, patch, "status")
}

// setControllerAnnotation sets the annotation that makes external-dns ignore an
// Ingress. The value is JSON; null removes the annotation.
func setControllerAnnotation(ctx context.Context, team, value string) {
	GinkgoHelper()
	patchIngress(ctx, team, fmt.Sprintf(`{"metadata":{"annotations":{"external-dns.kubernetes.io/controller":%s}}}`, value))
}

func patchIngress(ctx context.Context, team, patch string, subresources ...string) {
	GinkgoHelper()
	_, err := ingressClient(team).Patch(ctx, team, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	Expect(err).NotTo(HaveOccurred())
}

// ingressClient returns a client for the Ingresses in the namespace.
func ingressClient(namespace string) networkingv1.IngressInterface {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return clientset.NetworkingV1().Ingresses(namespace)
}

// createCertificate creates the TLS Secret that the Ingress references.
func createCertificate(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	chain, key, err := cert.GenerateSelfSignedCertKey("example.com", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(kube.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	})).To(Succeed())
}
