package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKindsThatDoNotExistAreWarnings(t *testing.T) {
	const prefix = "in.yaml: document 1: "
	for typeMeta, want := range map[string]string{
		"gateway.networking.k8s.io/v1 HTTPRout":            "kind HTTPRout does not exist in gateway.networking.k8s.io; did you mean HTTPRoute?",
		"gateway.networking.k8s.io/v1 GRPCRoot":            "kind GRPCRoot does not exist in gateway.networking.k8s.io; did you mean GRPCRoute?",
		"gateway.networking.k8s.io/v1 GatwayClass":         "kind GatwayClass does not exist in gateway.networking.k8s.io; did you mean GatewayClass?",
		"gateway.networking.k8s.io/v1 ListnerSet":          "kind ListnerSet does not exist in gateway.networking.k8s.io; did you mean ListenerSet?",
		"gateway.networking.k8s.io/v1beta1 ReferenceGrnt":  "kind ReferenceGrnt does not exist in gateway.networking.k8s.io; did you mean ReferenceGrant?",
		"gateway.networking.k8s.io/v1 Ingress":             "kind Ingress does not exist in gateway.networking.k8s.io",
		"tunnelgateway.dev/v1alpha1 Tunel":                 "kind Tunel does not exist in tunnelgateway.dev; did you mean Tunnel?",
		"tunnelgateway.de/v1alpha1 Tunnel":                 "apiVersion tunnelgateway.de/v1alpha1 of kind Tunnel does not exist; did you mean tunnelgateway.dev?",
		"gateway.networking.k8s.oi/v1 Gateway":             "apiVersion gateway.networking.k8s.oi/v1 of kind Gateway does not exist; did you mean gateway.networking.k8s.io?",
		"v1 Gateway":                                       "apiVersion v1 of kind Gateway does not exist; did you mean gateway.networking.k8s.io?",
		"v1 Servic":                                        "kind Servic does not exist in apiVersion v1; did you mean Service?",
		"v1 LimitRange":                                    "",
		"v1 Template":                                      "", // not in Kubernetes, but in OpenShift
		"apps/v1 Deploymnt":                                "",
		"networking.istio.io/v1 Gateway":                   "",
		"networking.k8s.io/v1 Ingress":                     "",
		"gateway.networking.k8s.io/v1 TLSRoute":            "",
		"gateway.networking.k8s.io/v1alpha2 TCPRoute":      "",
		"gateway.networking.k8s.io/v1 UDPRoute":            "",
		"gateway.networking.x-k8s.io/v1alpha1 XMesh":       "",
		"gateway.networking.x-k8s.io/v1alpha1 ListenerSet": "apiVersion gateway.networking.x-k8s.io/v1alpha1 of kind ListenerSet does not exist; did you mean gateway.networking.k8s.io?",
		"networking.k8s.io/v1 HTTPRoute":                   "apiVersion networking.k8s.io/v1 of kind HTTPRoute does not exist; did you mean gateway.networking.k8s.io?",
		"networking.x-k8s.io/v1alpha1 HTTPRoute":           "", // an old Gateway API group
		"policy.linkerd.io/v1beta3 HTTPRoute":              "",
	} {
		t.Run(typeMeta, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(typeMeta, " ")
			set := parse(t, "{apiVersion: "+apiVersion+", kind: "+kind+", metadata: {name: a}}")
			got := set.Warnings.Error()
			if want != "" {
				want = prefix + want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("warnings differ (-want +got):\n%s", diff)
			}
			if skipped := len(set.Skipped) > 0; skipped != (want == "") {
				t.Errorf("skipped: %t, want %t", skipped, want == "")
			}
		})
	}
}
