package externaldns

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
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
		Expect(w.zone.list("!TXT")).To(Equal(w.cnames(w.target("shared"), "home.ZONE")), "nothing is deleted")
	})
})
