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

// ingressRights are what the commands of the guide add to the sample's.
const ingressRights = `
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

const fromIngresses = "--source=ingress"

var _ = Describe("the migration from Ingress", func() {
	It("moves records from the Ingresses' address to the tunnel and back, each in one call", func(ctx SpecContext) {
		w := &world{platform: "platform"}
		w.serve("foo.com", "bar.com")
		w.apply(ingressRights)
		applySamples("migration/00-existing.yaml")
		applySamples("migration/before/*.yaml")
		address := func(team string, proxied bool) string {
			return record{team + ".com", "A", "192.0.2.10", proxied}.String()
		}
		for _, team := range []string{"foo", "bar"} {
			giveAddress(ctx, team, "192.0.2.10")
			createCertificate(ctx, team, team+"-tls")
		}
		w.expectCNAMEs([]string{address("foo", false), address("bar", false)}, fromIngresses, "!--cloudflare-proxied")
		w.expectCNAMEs([]string{address("foo", true), address("bar", true)}, fromIngresses)

		By("applying the new objects, beside which the Ingresses win")
		applySamples("migration/[123]0-*.yaml")
		Eventually(w.attached("HTTPRoute", "foo/foo-foo-com", "foo")).Should(Equal(accepted))
		Eventually(w.attached("HTTPRoute", "bar/bar-bar-com", "bar")).Should(Equal(accepted))
		Eventually(w.accepted("foo/foo")).Should(Equal(accepted))
		Eventually(w.accepted("bar/bar")).Should(Equal(accepted))
		calls := w.zones.changes()
		w.expectCNAMEs([]string{address("foo", true), address("bar", true)}, fromIngresses)
		Expect(w.zones.changes()).To(Equal(calls))

		By("ignoring one Ingress, and going back")
		tunnel := w.target("parent")
		hide(ctx, "foo", `"none"`)
		w.expectCNAMEs(append(w.cnames(tunnel, "foo.com"), address("bar", true)), fromIngresses)
		Expect(w.zones.changes()).To(Equal(calls + 1))
		hide(ctx, "foo", "null")
		w.expectCNAMEs([]string{address("foo", true), address("bar", true)}, fromIngresses)
		Expect(w.zones.changes()).To(Equal(calls + 2))

		By("ignoring both, which are then deleted")
		hide(ctx, "foo", `"none"`)
		hide(ctx, "bar", `"none"`)
		w.expectCNAMEs(w.cnames(tunnel, "foo.com", "bar.com"), fromIngresses)
		calls = w.zones.changes()
		for _, team := range []string{"foo", "bar"} {
			Expect(ingresses(team).Delete(ctx, team, metav1.DeleteOptions{})).To(Succeed())
		}
		w.expectCNAMEs(w.cnames(tunnel, "foo.com", "bar.com"), fromIngresses)
		w.expectCNAMEs(w.cnames(tunnel, "foo.com", "bar.com"))
		Expect(w.zones.changes()).To(Equal(calls))
	})
})

// giveAddress says in the Ingress's status what an ingress controller would.
func giveAddress(ctx context.Context, team, address string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
	patchIngress(ctx, team, patch, "status")
}

// hide sets the annotation by which external-dns ignores an Ingress; "null"
// takes it off.
func hide(ctx context.Context, team, value string) {
	GinkgoHelper()
	patchIngress(ctx, team, fmt.Sprintf(`{"metadata":{"annotations":{"external-dns.kubernetes.io/controller":%s}}}`, value))
}

func patchIngress(ctx context.Context, team, patch string, subresources ...string) {
	GinkgoHelper()
	_, err := ingresses(team).Patch(ctx, team, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	Expect(err).NotTo(HaveOccurred())
}

func ingresses(namespace string) networkingv1.IngressInterface {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return clientset.NetworkingV1().Ingresses(namespace)
}

// createCertificate makes the Secret that the Ingress had already.
func createCertificate(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	chain, key, err := cert.GenerateSelfSignedCertKey("example.com", nil, nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(kube.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	})).To(Succeed())
}
