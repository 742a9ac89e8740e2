package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restrictedServiceAccount is a ServiceAccount without permission to read
// ListenerSets.
const restrictedServiceAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: restricted, namespace: external-dns}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: restricted}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
- {apiGroups: [gateway.networking.k8s.io], resources: [gateways, httproutes, grpcroutes], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: restricted}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: restricted}
subjects: [{kind: ServiceAccount, name: restricted, namespace: external-dns}]
`

var _ = Describe("without permission to read ListenerSets", func() {
	It("external-dns works without --gateway-listener-sets and exits after a minute with it", func(ctx SpecContext) {
		e := newEnvironment()
		e.apply(restrictedServiceAccount)
		e.apply(gateway("PLATFORM/shared", listener("home", "home.ZONE")) + route("PLATFORM/home", sharedGateway))
		Eventually(e.routeAcceptance("HTTPRoute", "PLATFORM/home", "shared")).Should(Equal(accepted))
		e.kubeconfig = serviceAccountKubeconfig(ctx, "restricted")
		e.expectCNAMEs(e.cnames(e.tunnelTarget("shared"), "home.ZONE"), withoutListenerSets)

		log, err := e.runOnce()
		Expect(err).To(HaveOccurred())
		Expect(log).To(ContainSubstring("failed to sync *v1.ListenerSet after 1m0s"))
		Expect(e.dns.recordsOfType("!TXT")).To(Equal(e.cnames(e.tunnelTarget("shared"), "home.ZONE")), "external-dns must not delete the record")
	})
})

var _ = Describe("the pod of the manifest", func() {
	It("is admitted to a namespace that enforces the Pod Security Standard \"restricted\"", func(ctx SpecContext) {
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
