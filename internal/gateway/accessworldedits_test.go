package gateway_test

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// change changes one thing: an object, an application, the API or the process.
func (w *protectedWorld) change() {
	changes := []struct {
		weight int
		name   string
		apply  func()
	}{
		{9, "policy", w.changePolicy},
		{4, "entry of the class", func() { w.changeEntry(&w.class.Spec, true) }},
		{4, "entry of a Gateway", func() { w.changeEntry(&w.gateway().configuration.Spec, false) }},
		{3, "listener", func() { w.gateway().toggleListener(w.owner()) }},
		{3, "route", func() { w.gateway().changeRoute(w.owner()) }},
		{1, "mode", w.toggleMode},
		{1, "permission", w.togglePermission},
		{2, "pause", w.togglePause},
		{2, "AccessPolicies cannot be read", func() { w.unknown = !w.unknown }},
		{3, "API of Access", func() { w.accessFails = !w.accessFails }},
		{3, "API of tunnels", func() { w.tunnelsFail = !w.tunnelsFail }},
		{2, "answers get lost", func() { w.loses = !w.loses }},
		{4, "leader", w.changeLeader},
		{3, "application", w.changeApplication},
	}
	total := 0
	for _, c := range changes {
		total += c.weight
	}
	chosen := w.IntN(total)
	for _, c := range changes {
		if chosen -= c.weight; chosen < 0 {
			w.note("change: %s", c.name)
			c.apply()
			return
		}
	}
}

func (w *protectedWorld) gateway() *protectedGateway { return w.gateways[w.IntN(len(w.gateways))] }

func (w *protectedWorld) changeLeader() {
	w.leader++
	w.startLeader()
}

func (w *protectedWorld) toggleMode() {
	mode := v1alpha1.ApplicationsManaged
	if w.isManaged() {
		mode = v1alpha1.ApplicationsDisabled
	}
	w.class.Spec.Access.Applications = &mode
}

func (w *protectedWorld) togglePermission() {
	space := w.spaces[w.owner()]
	permission := "*.example.com *.example.org"
	if space.Annotations["tunnelgateway.dev/hostnames"] == permission {
		permission = "*.example.com"
	}
	space.Annotations = map[string]string{"tunnelgateway.dev/hostnames": permission}
}

func (w *protectedWorld) togglePause() {
	g := w.gateway()
	if v1alpha1.RequestsPause(g.object) {
		g.object.Annotations = nil
		return
	}
	g.object.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
}

// changePolicy creates, changes or deletes an AccessPolicy.
func (w *protectedWorld) changePolicy() {
	if n := len(w.policies); n > 0 && w.chance(60) {
		i := w.IntN(n)
		if w.chance(50) {
			w.policies = slices.Delete(slices.Clone(w.policies), i, i+1)
			return
		}
		changed := w.policies[i].DeepCopy()
		w.randomize(changed)
		w.policies = slices.Clone(w.policies)
		w.policies[i] = changed
		return
	}
	owner, g := w.owner(), w.IntN(len(w.gateways))
	w.objects++
	p := &v1alpha1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner, Name: fmt.Sprint("policy-", w.objects), CreationTimestamp: metav1.NewTime(worldStart.Add(w.wall)), Generation: 1,
	}}
	target := gatewayv1.LocalPolicyTargetReferenceWithSectionName{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
		Group: gatewayv1.GroupName, Kind: "ListenerSet", Name: gatewayv1.ObjectName(fmt.Sprintf("set-%d", g)),
	}}
	if owner == "infra" {
		target.Kind, target.Name = "Gateway", gatewayv1.ObjectName(w.gateways[g].name.Name)
	}
	if w.chance(60) {
		target.SectionName = new(gatewayv1.SectionName(fmt.Sprint("l", w.IntN(len(worldPools[owner])))))
	}
	p.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{target}
	w.randomize(p)
	w.policies = append(slices.Clone(w.policies), p)
}

func (w *protectedWorld) randomize(p *v1alpha1.AccessPolicy) {
	p.Spec.Policies, p.Spec.SessionDuration = w.names(), w.session()
}

func (w *protectedWorld) names() []v1alpha1.PolicyName {
	all := []v1alpha1.PolicyName{"employees", "ci", "guests"}
	return all[w.IntN(2) : 1+w.IntN(2)+1]
}

func (w *protectedWorld) session() *v1alpha1.SessionDuration {
	return new([]v1alpha1.SessionDuration{"1h", "8h"}[w.IntN(2)])
}

// changeEntry adds or removes an entry of the level.
func (w *protectedWorld) changeEntry(spec *v1alpha1.TunnelConfigurationSpec, isClass bool) {
	entries := slices.Clone(spec.ListenerConfigurations)
	hostname := worldEntries[w.IntN(len(worldEntries))]
	kept := slices.DeleteFunc(entries, func(e v1alpha1.ListenerConfiguration) bool { return e.Hostname == hostname })
	if len(kept) == len(spec.ListenerConfigurations) && len(kept) < 3 && (hostname != "" || isClass && w.chance(30)) {
		a := &v1alpha1.Access{Required: true}
		switch w.IntN(5) {
		case 0:
			a.Required = false
		case 1:
			a.TeamName, a.AUDTags = new("acme"), []v1alpha1.AUDTag{"hand"}
		default:
			a.Policies, a.SessionDuration = w.names(), w.session()
		}
		kept = append(kept, v1alpha1.ListenerConfiguration{ProtocolPort: v1alpha1.EveryPort, Hostname: hostname, Access: a})
	}
	spec.ListenerConfigurations = kept
}

// changeApplication does what another writer does in the account.
func (w *protectedWorld) changeApplication() {
	all := w.database.Applications(worldAccount)
	if len(all) == 0 || w.chance(20) {
		host := worldHosts[w.IntN(len(worldHosts))]
		_, _ = w.database.Create(worldAccount, fmt.Appendf(nil, `{"name":"external","type":"self_hosted","domain":%q}`, host)) // it may exist
		return
	}
	a := all[w.IntN(len(all))]
	switch w.IntN(4) {
	case 0:
		_ = w.database.Delete(worldAccount, a.ID)
	case 1:
		w.database.Edit(worldAccount, a.ID, func(fields map[string]any) { fields["tags"] = []any{} })
	case 2:
		w.database.Edit(worldAccount, a.ID, func(fields map[string]any) { fields["session_duration"] = "730h" })
	default:
		if a.Name == "external" {
			_ = w.database.Delete(worldAccount, a.ID)
		}
	}
}

// heal ends all faults.
func (w *protectedWorld) heal() {
	w.accessFails, w.tunnelsFail, w.loses, w.unknown = false, false, false, false
	for _, g := range w.gateways {
		g.object.Annotations = nil
	}
	for range 4 {
		w.pass(8 * time.Minute)
	}
}
