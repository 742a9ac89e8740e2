package faults

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// logs is the directory with the controllers' log.
const logs = "../../bin/faults"

func init() {
	if err := os.MkdirAll(logs, 0o750); err != nil {
		panic(err)
	}
	_ = os.Remove(logs + "/controllers.log") // of an earlier run
}

// settle waits until everything is as the cluster asks for, with nothing orphaned or duplicated at
// Cloudflare.
func (w *world) settle() {
	w.Helper()
	w.eventually("after the fault", func() string {
		for _, missing := range []func() string{w.missingTunnels, w.missingConditions, w.missingRecords, w.missingApplications, w.missingPlan} {
			if text := missing(); text != "" {
				return text
			}
		}
		return ""
	})
}

// follow changes the probes' paths, and waits until both data planes serve the new paths only.
func (w *world) follow() {
	w.Helper()
	w.probes++
	now, before := fmt.Sprintf("/probe-%d", w.probes), fmt.Sprintf("/probe-%d", w.probes-1)
	for plane := range planes {
		update(w, &gatewayv1.HTTPRoute{ObjectMeta: in("infra", plane+"-probe")}, func(r *gatewayv1.HTTPRoute) { atPath(r, now) })
	}
	for plane := range planes {
		w.eventually("the changed route of "+plane, func() string {
			ctx, handler, host := w.Context(), w.cloudflare.Visitors(), hostname(plane, "probe")
			if got := request(ctx, handler, host, now, "") + ", " + request(ctx, handler, host, before, ""); got != "web, 404" {
				return "got " + got + ", want web, 404"
			}
			return ""
		})
	}
}

// list reads all objects, or returns why it cannot.
func (w *world) list(list client.ObjectList) string {
	return text(w.kube.List(w.Context(), list))
}

// missingTunnels compares the tunnels at Cloudflare, the Tunnels and the Gateways.
func (w *world) missingTunnels() string {
	var gateways gatewayv1.GatewayList
	var objects v1alpha1.TunnelList
	if text := w.list(&gateways) + w.list(&objects); text != "" {
		return text
	}
	want, recorded, live := []string{}, []string{}, []string{}
	for _, g := range gateways.Items {
		want = append(want, tunnel.RemoteName(clusterID, client.ObjectKeyFromObject(&g)))
	}
	for _, o := range objects.Items {
		if o.Status.Phase != v1alpha1.TunnelServing {
			return fmt.Sprintf("Tunnel %s is %s: %v", o.Name, o.Status.Phase, o.Status.Conditions)
		}
		gateway := types.NamespacedName{Namespace: o.Spec.Gateway.Namespace, Name: o.Spec.Gateway.Name}
		recorded = append(recorded, tunnel.RemoteName(clusterID, gateway)+" "+o.Status.TunnelID)
	}
	for _, t := range w.cloudflare.Tunnels() {
		if !t.Deleted {
			live = append(live, t.Name+" "+t.ID)
		}
	}
	for _, all := range [][]string{want, recorded, live} {
		slices.Sort(all)
	}
	if diff := cmp.Diff(recorded, live); diff != "" {
		return "tunnels (-recorded +at Cloudflare):\n" + diff
	}
	for i := range live {
		live[i], _, _ = strings.Cut(live[i], " ")
	}
	if diff := cmp.Diff(want, live); diff != "" {
		return "tunnels (-Gateways +at Cloudflare):\n" + diff
	}
	return ""
}

// missingConditions returns the first condition of a Gateway, ListenerSet or AccessPolicy that is
// not as it is in a healthy cluster.
func (w *world) missingConditions() string {
	var gateways gatewayv1.GatewayList
	var sets gatewayv1.ListenerSetList
	var policies v1alpha1.AccessPolicyList
	if text := w.list(&gateways) + w.list(&sets) + w.list(&policies); text != "" {
		return text
	}
	for _, g := range gateways.Items {
		if text := unhealthy(g.Status.Conditions, g.Generation, "Accepted", "Programmed", ready("Connectors"), ready("DNS"), ready("Access")); text != "" {
			return "Gateway " + g.Name + ": " + text
		}
	}
	for _, s := range sets.Items {
		if text := unhealthy(s.Status.Conditions, s.Generation, "Accepted", "Programmed", ready("DNS")); text != "" {
			return "ListenerSet " + s.Name + ": " + text
		}
	}
	for _, p := range policies.Items {
		for _, ancestor := range p.Status.Ancestors {
			if text := unhealthy(ancestor.Conditions, p.Generation, "Accepted", "Programmed"); text != "" {
				return "AccessPolicy " + p.Name + ": " + text
			}
		}
	}
	return ""
}

func ready(what string) string { return "tunnelgateway.dev/" + what + "Ready" }

// unhealthy returns the first of the conditions that is missing, old or not True. DataPlaneReady
// may be missing: only Envoys have it.
func unhealthy(conditions []metav1.Condition, generation int64, kinds ...string) string {
	if meta.FindStatusCondition(conditions, ready("DataPlane")) != nil {
		kinds = append(kinds, ready("DataPlane"))
	}
	for _, kind := range kinds {
		switch c := meta.FindStatusCondition(conditions, kind); {
		case c == nil:
			return kind + " is missing"
		case c.ObservedGeneration != generation:
			return fmt.Sprintf("%s is about generation %d, not %d", kind, c.ObservedGeneration, generation)
		case c.Status != metav1.ConditionTrue:
			return fmt.Sprintf("%s is %s, %s: %s", kind, c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// served returns the tunnel of each hostname that has a route, by hostname.
func (w *world) served() (map[string]string, error) {
	var gateways gatewayv1.GatewayList
	var sets gatewayv1.ListenerSetList
	if err := w.kube.List(w.Context(), &gateways); err != nil {
		return nil, err
	}
	if err := w.kube.List(w.Context(), &sets); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, g := range gateways.Items {
		id, _ := w.cloudflare.TunnelID(tunnel.RemoteName(clusterID, client.ObjectKeyFromObject(&g)))
		for _, l := range g.Spec.Listeners {
			found[string(*l.Hostname)] = id
		}
	}
	for _, s := range sets.Items {
		gateway := types.NamespacedName{Namespace: "infra", Name: string(s.Spec.ParentRef.Name)}
		id, _ := w.cloudflare.TunnelID(tunnel.RemoteName(clusterID, gateway))
		for _, l := range s.Spec.Listeners {
			found[string(*l.Hostname)] = id
		}
	}
	return found, nil
}

// missingRecords compares the records of the zone with the listeners, each of which has a route.
func (w *world) missingRecords() string {
	served, err := w.served()
	if err != nil {
		return err.Error()
	}
	want, got := []string{}, []string{}
	for host, id := range served {
		want = append(want, host+" CNAME "+id+".cfargotunnel.com")
	}
	for _, r := range w.zones.Records(w.zone) {
		got = append(got, r.Name+" "+r.Type+" "+r.Content)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return "records (-want +got):\n" + diff
	}
	return ""
}

// missingApplications compares the applications of the account with the AccessPolicies, each of
// which protects one hostname.
func (w *world) missingApplications() string {
	var policies v1alpha1.AccessPolicyList
	if text := w.list(&policies); text != "" {
		return text
	}
	want, got := []string{}, []string{}
	for _, p := range policies.Items {
		want = append(want, hostname(string(p.Spec.TargetRefs[0].Name), "admin"))
	}
	for _, app := range w.access.Applications(account) {
		got = append(got, strings.Join(app.Domains, ","))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return "applications (-want +got):\n" + diff
	}
	return ""
}
