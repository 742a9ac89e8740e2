package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// list reads objects from the cache.
func list[T any](h *outageHarness, objects client.ObjectList) (items []*T) {
	h.t.Helper()
	if err := h.cached.List(h.t.Context(), objects); err != nil {
		h.t.Fatal(err)
	}
	all, err := meta.ExtractList(objects)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, one := range all {
		items = append(items, any(one).(*T))
	}
	return items
}

// missing returns the first difference between Cloudflare, the Tunnels, the statuses and what the
// objects ask for, or "".
func (h *outageHarness) missing() string {
	h.t.Helper()
	gateways, tunnels := list[gatewayv1.Gateway](h, &gatewayv1.GatewayList{}), list[v1alpha1.Tunnel](h, &v1alpha1.TunnelList{})
	if len(gateways) != len(tunnels) {
		return fmt.Sprintf("%d Gateways have %d Tunnels", len(gateways), len(tunnels))
	}
	if text := h.missingConditions(); text != "" {
		return text
	}
	return cmp.Diff(h.wanted(), h.remote())
}

// missingConditions returns the first condition that is not True and current.
func (h *outageHarness) missingConditions() string {
	h.t.Helper()
	protected := h.protected()
	for _, g := range list[gatewayv1.Gateway](h, &gatewayv1.GatewayList{}) {
		kinds := []string{"Accepted", "Programmed", "tunnelgateway.dev/DNSReady"}
		if protected[client.ObjectKeyFromObject(g)] {
			kinds = append(kinds, "tunnelgateway.dev/AccessReady")
		}
		if text := falseCondition(g.Status.Conditions, g.Generation, kinds...); text != "" {
			return "Gateway " + g.Name + ": " + text
		}
	}
	for _, r := range list[gatewayv1.HTTPRoute](h, &gatewayv1.HTTPRouteList{}) {
		if len(r.Status.Parents) != 1 {
			return fmt.Sprintf("HTTPRoute %s has %d parents", r.Name, len(r.Status.Parents))
		}
		if text := falseCondition(r.Status.Parents[0].Conditions, r.Generation, "Accepted", "ResolvedRefs"); text != "" {
			return "HTTPRoute " + r.Name + ": " + text
		}
	}
	return ""
}

// protected returns the Gateways with an AccessPolicy, which has the same name.
func (h *outageHarness) protected() map[types.NamespacedName]bool {
	h.t.Helper()
	found := map[types.NamespacedName]bool{}
	for _, policy := range list[v1alpha1.AccessPolicy](h, &v1alpha1.AccessPolicyList{}) {
		found[client.ObjectKeyFromObject(policy)] = true
	}
	return found
}

// falseCondition returns the first of the conditions that is not True for the generation, or "".
func falseCondition(all []metav1.Condition, generation int64, kinds ...string) string {
	for _, kind := range kinds {
		if c := meta.FindStatusCondition(all, kind); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != generation {
			return fmt.Sprintf("%s for generation %d is %+v", kind, generation, c)
		}
	}
	return ""
}

// ingressRule is what the test knows of a rule in a tunnel's configuration.
type ingressRule struct {
	Hostname, Path, Service string
	OriginRequest           struct{ Access struct{ Required bool } }
}

// remoteState is what the account has: each tunnel with its rules, each record with its content,
// and the hostname of each application.
type remoteState struct{ Tunnels, Records, Applications []string }

// wanted returns what the account must have.
func (h *outageHarness) wanted() (want remoteState) {
	h.t.Helper()
	routes, protected := map[types.NamespacedName]*gatewayv1.HTTPRoute{}, h.protected()
	for _, route := range list[gatewayv1.HTTPRoute](h, &gatewayv1.HTTPRouteList{}) {
		routes[client.ObjectKeyFromObject(route)] = route
	}
	for _, g := range list[gatewayv1.Gateway](h, &gatewayv1.GatewayList{}) {
		key := state.Key{NamespacedName: client.ObjectKeyFromObject(g)}
		host := string(*g.Spec.Listeners[0].Hostname)
		want.Records = append(want.Records, host+" "+h.tunnelOf(key)+".cfargotunnel.com")
		rule := ingressRule{Hostname: host, Service: "http://web." + g.Namespace + ".svc.cluster.local:80"}
		if matches := routes[key.NamespacedName].Spec.Rules[0].Matches; len(matches) > 0 {
			rule.Path = "^" + *matches[0].Path.Value + "$"
		}
		if rule.OriginRequest.Access.Required = protected[key.NamespacedName]; rule.OriginRequest.Access.Required {
			want.Applications = append(want.Applications, host)
		}
		want.Tunnels = append(want.Tunnels, fmt.Sprintf("west.%s.%s: %v", g.Namespace, g.Name, []ingressRule{rule, {Service: "http_status:404"}}))
	}
	return want.sorted()
}

func (r remoteState) sorted() remoteState {
	for _, all := range [][]string{r.Tunnels, r.Records, r.Applications} {
		slices.Sort(all)
	}
	return r
}

// remote returns what the account has.
func (h *outageHarness) remote() (got remoteState) {
	h.t.Helper()
	for _, found := range h.tunnels() {
		got.Tunnels = append(got.Tunnels, fmt.Sprintf("%s: %v", found.name, found.rules))
	}
	for _, r := range h.records.Records(h.zone) {
		got.Records = append(got.Records, r.Name+" "+r.Content)
	}
	for _, a := range h.access.Applications(outageAccount) {
		got.Applications = append(got.Applications, strings.Join(a.Domains, ","))
	}
	return got.sorted()
}

// remoteTunnel is a tunnel that exists, with its rules.
type remoteTunnel struct {
	name  string
	rules []ingressRule
}

func (h *outageHarness) tunnels() (found []remoteTunnel) {
	h.t.Helper()
	for _, t := range h.cloudflare.Tunnels() {
		var stored struct{ Ingress []ingressRule }
		if content, _ := h.cloudflare.StoredConfiguration(t.ID); content != nil {
			if err := json.Unmarshal(content, &stored); err != nil {
				h.t.Fatal(err)
			}
		}
		if !t.Deleted {
			found = append(found, remoteTunnel{t.Name, stored.Ingress})
		}
	}
	return found
}
