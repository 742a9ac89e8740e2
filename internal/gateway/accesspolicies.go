package gateway

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// accessPolicies are the AccessPolicies that target the Gateway or one of its ListenerSets.
type accessPolicies struct {
	// all are in order of precedence: the oldest first, then by name.
	all []*accessPolicy
	// byOwner are the targets of each owner of listeners, in the order of all.
	byOwner map[Owner][]accessTarget
	// unknownSections has a policy with a sectionName that the owner does not have, for
	// each owner that has one.
	unknownSections map[Owner]unknownSection
	// sections are the names of the listeners with one hostname.
	sections map[Owner]map[string][]gatewayv1.SectionName
	// notAllowed are the ListenerSets that the Gateway does not allow.
	notAllowed map[Owner]bool
	// decided has the decision for each group, by its hostname.
	decided map[string]policyForGroup
}

// policyForGroup is the policy that decides about the hostnames of a group, or nil, and why
// it closes them, or nil.
type policyForGroup struct {
	owner   Owner // of the group's listeners
	policy  *accessPolicy
	invalid *Problem
}

// accessPolicy is one AccessPolicy with what is decided about it.
type accessPolicy struct {
	object *v1alpha1.AccessPolicy
	name   types.NamespacedName
	// invalid is why the policy closes the hostnames of its targets, or nil. The
	// CustomResourceDefinition prevents it.
	invalid *Problem
	// targets are the targets on this Gateway.
	targets []accessTarget
}

// accessTarget is what a policy targets: all listeners of an owner, or one of them.
type accessTarget struct {
	policy  *accessPolicy
	owner   Owner
	section gatewayv1.SectionName
}

// unknownSection is a sectionName that does not exist.
type unknownSection struct {
	policy  *accessPolicy
	problem *Problem
}

// newAccessPolicies decides which policies apply to the listeners of the Gateway and its
// sets. groups are the listeners that claim their hostnames.
func newAccessPolicies(objects []*v1alpha1.AccessPolicy, gateway Owner, listeners []*Listener, sets []*Set, groups map[string]*group) *accessPolicies {
	if len(objects) == 0 {
		return nil // most Gateways
	}
	a := &accessPolicies{
		byOwner: map[Owner][]accessTarget{}, unknownSections: map[Owner]unknownSection{},
		sections: map[Owner]map[string][]gatewayv1.SectionName{}, notAllowed: map[Owner]bool{}, decided: map[string]policyForGroup{},
	}
	a.addListeners(gateway, listeners)
	for _, set := range sets {
		a.addListeners(set.Owner, set.Listeners)
		if set.NotAllowed != nil {
			a.notAllowed[set.Owner] = true
		}
	}
	for _, object := range objects {
		p := &accessPolicy{object: object, name: types.NamespacedName{Namespace: object.Namespace, Name: object.Name}}
		p.invalid = p.violation()
		a.all = append(a.all, p)
	}
	slices.SortFunc(a.all, func(x, y *accessPolicy) int {
		return cmp.Or(cmp.Compare(ageOf(x.object.CreationTimestamp), ageOf(y.object.CreationTimestamp)), compareNames(x.name, y.name))
	})
	for _, p := range a.all {
		a.addTargets(p)
	}
	for hostname, g := range groups {
		a.decided[hostname] = a.decide(g)
	}
	return a
}

// addListeners records the names of the owner's listeners by their hostname.
func (a *accessPolicies) addListeners(owner Owner, listeners []*Listener) {
	a.sections[owner] = map[string][]gatewayv1.SectionName{}
	for _, l := range listeners {
		a.sections[owner][l.Hostname()] = append(a.sections[owner][l.Hostname()], l.Spec.Name)
	}
}

// addTargets records the policy's targets on this Gateway.
func (a *accessPolicies) addTargets(p *accessPolicy) {
	for _, ref := range p.object.Spec.TargetRefs {
		target, ok := newAccessTarget(p, ref)
		if _, known := a.sections[target.owner]; !ok || !known || slices.Contains(p.targets, target) {
			continue
		}
		p.targets = append(p.targets, target)
		a.byOwner[target.owner] = append(a.byOwner[target.owner], target)
		if _, found := a.unknownSections[target.owner]; !found && !a.exists(target) {
			a.unknownSections[target.owner] = unknownSection{p, unknownSectionProblem(target)}
		}
	}
}

// newAccessTarget returns what the reference names, and false if it names another kind.
func newAccessTarget(p *accessPolicy, ref gatewayv1.LocalPolicyTargetReferenceWithSectionName) (accessTarget, bool) {
	owner := Owner{string(ref.Kind), types.NamespacedName{Namespace: p.name.Namespace, Name: string(ref.Name)}}
	return accessTarget{p, owner, ptr.Deref(ref.SectionName, "")},
		ref.Group == gatewayv1.GroupName && (ref.Kind == KindGateway || ref.Kind == KindListenerSet)
}

// exists reports whether the owner has the listener that the target names. A ListenerSet
// that the Gateway does not allow has no listeners, and no target in it exists.
func (a *accessPolicies) exists(t accessTarget) bool {
	if t.section == "" {
		return true
	}
	for _, names := range a.sections[t.owner] {
		if slices.Contains(names, t.section) {
			return true
		}
	}
	return false
}

// of returns the policy that decides about the hostnames that the group's listeners claim,
// and why it closes them, or nil. Among several policies, one with a sectionName precedes,
// then the older one, then the first by name. All listeners with one hostname count as one,
// because a tunnel does not distinguish their ports.
//
// A sectionName that does not exist closes all hostnames of the owner, because it is not
// known which of them the policy is to protect.
func (a *accessPolicies) of(g *group) policyForGroup {
	if a == nil {
		return policyForGroup{}
	}
	return a.decided[g.hostname]
}

func (a *accessPolicies) decide(g *group) policyForGroup {
	decisive := a.decisive(g)
	if unknown, ok := a.unknownSections[g.owner]; ok {
		return policyForGroup{g.owner, cmp.Or(decisive, unknown.policy), unknown.problem}
	}
	if decisive == nil {
		return policyForGroup{owner: g.owner}
	}
	return policyForGroup{g.owner, decisive, decisive.invalid}
}

// decisive returns the policy that takes precedence for the group's listeners, or nil.
func (a *accessPolicies) decisive(g *group) *accessPolicy {
	for _, withSection := range []bool{true, false} {
		for _, target := range a.byOwner[g.owner] {
			if (target.section != "") == withSection && a.includes(target, g.hostname) {
				return target.policy
			}
		}
	}
	return nil
}

// selected returns the hostnames that the policy's targets claim, with the policy that takes
// precedence for each. A hostname can appear several times.
func (a *accessPolicies) selected(p *accessPolicy) iter.Seq2[string, *accessPolicy] {
	return func(yield func(string, *accessPolicy) bool) {
		for _, target := range p.targets {
			for hostname := range a.sections[target.owner] {
				decided := a.decided[hostname]
				if decided.owner == target.owner && a.includes(target, hostname) && !yield(hostname, decided.policy) {
					return
				}
			}
		}
	}
}

// includes reports whether the target includes a listener with the hostname.
func (a *accessPolicies) includes(t accessTarget, hostname string) bool {
	return t.section == "" || slices.Contains(a.sections[t.owner][hostname], t.section)
}

func unknownSectionProblem(t accessTarget) *Problem {
	return &Problem{Reason: conditions.ReasonTargetNotFound, Message: fmt.Sprintf(
		"AccessPolicy %q targets listener %q of %s, which does not exist, so all hostnames of the %s are closed. Correct the sectionName, or remove the target.",
		t.policy.name.Name, t.section, t.owner, t.owner.Kind)}
}

// violation returns why the policy is not valid, or nil.
func (p *accessPolicy) violation() *Problem {
	invalid := func(format string, args ...any) *Problem {
		return &Problem{Reason: conditions.ReasonInvalid, Message: message.Cut(fmt.Sprintf(format, args...), message.MaxSize/2)}
	}
	for _, ref := range p.object.Spec.TargetRefs {
		if _, ok := newAccessTarget(p, ref); !ok {
			return invalid("AccessPolicy %q targets %s %q; only the kinds Gateway and ListenerSet are supported. Correct spec.targetRefs.", p.name.Name, ref.Kind, ref.Name)
		}
	}
	if len(p.object.Spec.Policies) == 0 {
		return invalid("AccessPolicy %q has no policies, so no visitor could be allowed. Set spec.policies.", p.name.Name)
	}
	if d := p.object.Spec.SessionDuration; d != nil {
		if duration, err := time.ParseDuration(string(*d)); err != nil || duration <= 0 {
			return invalid("spec.sessionDuration of AccessPolicy %q is not a duration such as 8h or 30m. Correct it.", p.name.Name)
		}
	}
	return nil
}
