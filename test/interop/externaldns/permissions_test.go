package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A ServiceAccount that may not read ListenerSets.
const withoutRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: blind, namespace: external-dns}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: blind}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
- {apiGroups: [gateway.networking.k8s.io], resources: [gateways, httproutes, grpcroutes], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: blind}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: blind}
subjects: [{kind: ServiceAccount, name: blind, namespace: external-dns}]
`

var _ = Describe("without the right to read ListenerSets", func() {
	It("external-dns works without the flag, and ends after a minute with it", func(ctx SpecContext) {
		w := newWorld()
		w.apply(withoutRights)
		w.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(w.attached("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		w.kubeconfig = connectAs(ctx, "blind")
		w.expectCNAMEs(w.cnames(w.target("shared"), "home.ZONE"), withoutSets)

		log, err := w.sync()
		Expect(err).To(HaveOccurred())
		Expect(log).To(ContainSubstring("failed to sync *v1.ListenerSet after 1m0s"))
		Expect(w.zones.list("!TXT")).To(Equal(w.cnames(w.target("shared"), "home.ZONE")), "nothing is deleted")
	})
})

var _ = Describe("the pod of the manifest", func() {
	It("is what a namespace that enforces the standard \"restricted\" accepts", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}}
		Expect(kube.Create(ctx, namespace)).To(Succeed())
		var deployment appsv1.Deployment
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: programName, Name: programName}, &deployment)).To(Succeed())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "restricted", Name: "pod"}, Spec: deployment.Spec.Template.Spec}
		pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
		Expect(kube.Create(ctx, pod.DeepCopy(), client.DryRunAll)).To(Succeed())

		pod.Spec.SecurityContext = nil
		Expect(kube.Create(ctx, pod, client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")))
	})
})
