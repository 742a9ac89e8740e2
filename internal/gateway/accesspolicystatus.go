package gateway

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// The conditions of an AccessPolicy in which the reasons of hostnames appear.
var (
	acceptedReasons = []conditions.Reason{conditions.ReasonHostnameNotPermitted, conditions.ReasonLimitExceeded}
	resolvedReasons = []conditions.Reason{conditions.ReasonPolicyNotFound, conditions.ReasonPolicyInvalid}
	programReasons  = []conditions.Reason{
		conditions.ReasonApplicationExists, conditions.ReasonOverridden, conditions.ReasonContested, conditions.ReasonSettingsConflict,
		conditions.ReasonDisabled, conditions.ReasonForbidden, conditions.ReasonPending,
	}
)

const (
	messagePolicyProgrammed = "An application of Cloudflare Access protects each hostname."
	messagePolicyClosed     = "The hostnames are closed until the problem in the other conditions is fixed."
)

// accessPolicyStatuses returns the entry for the Gateway in the status of each AccessPolicy.
func (r *Result) accessPolicyStatuses(report accessReport) []AccessPolicyStatus {
	if r.accessPolicies == nil {
		return nil
	}
	byPolicy := report.hostnamesByPolicy()
	var statuses []AccessPolicyStatus
	for _, p := range r.accessPolicies.all {
		status := AccessPolicyStatus{NamespacedName: p.name}
		if len(p.targets) > 0 {
			status.Ancestors = append(status.Ancestors, *r.newAncestor(report.policyConditions(p, ptr.Deref(byPolicy[p], policyHostnames{}), r)))
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// policyConditions returns the conditions of a policy that targets the Gateway or one of its
// ListenerSets.
func (a accessReport) policyConditions(p *accessPolicy, of policyHostnames, r *Result) conditionList {
	c := conditionList{generation: p.object.Generation}
	accepted := p.problem(r)
	if accepted == nil {
		accepted = a.worst(of.decided, acceptedReasons)
	}
	c.check(conditions.TypeAccepted, accepted, conditions.ReasonAccepted, messagePolicyAccepted)
	if !r.accessPolicies.selectsAny(p) {
		return c // it protects nothing
	}
	resolved := p.unresolved(r)
	if resolved == nil {
		resolved = a.worst(of.decided, resolvedReasons)
	}
	c.check(conditions.TypeResolvedRefs, resolved, conditions.ReasonResolvedRefs, messageResolvedRefs)
	isClosed := resolved != nil || a.worst(of.decided, accessReasons) != nil
	c.setPolicyProgrammed(append(a.problems(of.decided, programReasons), of.overridden...), r.Rejected, isClosed)
	return c
}

// worst returns the problems of the hostnames with one of the reasons, or nil.
func (a accessReport) worst(hostnames []string, reasons []conditions.Reason) *Problem {
	problems := a.problems(hostnames, reasons)
	if len(problems) == 0 {
		return nil
	}
	return &Problem{Reason: problems[0].reason, Message: describeHostnameProblems(problems, message.MaxSize)}
}

// policyHostnames are the hostnames of one policy.
type policyHostnames struct {
	// decided are those about which the policy decides, sorted. overridden are those about
	// which a higher level decides instead, as problems.
	decided    []string
	overridden []hostnameProblem
}

// hostnamesByPolicy returns the hostnames of each policy.
func (a accessReport) hostnamesByPolicy() map[*accessPolicy]*policyHostnames {
	byPolicy := map[*accessPolicy]*policyHostnames{}
	if a.accessTable == nil {
		return byPolicy
	}
	for _, hostname := range slices.Sorted(maps.Keys(a.decided)) {
		decided, policy := a.decided[hostname], a.levels.policies.of(a.claimant(hostname)).policy
		if policy == nil {
			continue
		}
		if byPolicy[policy] == nil {
			byPolicy[policy] = &policyHostnames{}
		}
		if decided.policy == policy {
			byPolicy[policy].decided = append(byPolicy[policy].decided, hostname)
			continue
		}
		owner := "GatewayClass"
		if decided.level == access.LevelGateway {
			owner = KindGateway
		}
		byPolicy[policy].overridden = append(byPolicy[policy].overridden, hostnameProblem{quoteEvery(hostname), conditions.ReasonOverridden, fmt.Sprintf(
			"an entry of the %s protects the hostname, so the AccessPolicy does not apply to it.", owner)})
	}
	return byPolicy
}

// setPolicyProgrammed adds the condition Programmed. rejected is why the Gateway is not
// accepted, or nil. isClosed reports whether another condition says why hostnames are closed.
func (c *conditionList) setPolicyProgrammed(problems []hostnameProblem, rejected *Problem, isClosed bool) {
	sortHostnameProblems(problems, programReasons)
	switch {
	case rejected != nil:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonPending, fmt.Sprintf("The Gateway is not accepted (%s): %s", rejected.Reason, rejected.Message))
	case len(problems) > 0:
		c.set(conditions.TypeProgrammed, false, problems[0].reason, describeHostnameProblems(problems, message.MaxSize))
	case isClosed:
		c.set(conditions.TypeProgrammed, false, conditions.ReasonPending, messagePolicyClosed)
	default:
		c.set(conditions.TypeProgrammed, true, conditions.ReasonProgrammed, messagePolicyProgrammed)
	}
}

// problem returns why the policy is not accepted for the Gateway, or nil, as far as the
// hostnames do not decide.
func (p *accessPolicy) problem(r *Result) *Problem {
	if p.invalid != nil {
		return p.invalid
	}
	for _, target := range p.targets {
		if r.accessPolicies.notAllowed[target.owner] {
			return &Problem{Reason: conditions.ReasonTargetNotFound, Message: fmt.Sprintf("%s is not allowed by its Gateway, so the AccessPolicy protects nothing of it. See its status.", target.owner)}
		}
		if !r.accessPolicies.exists(target) {
			return unknownSectionProblem(target)
		}
	}
	if !r.accessPolicies.selectsAny(p) {
		return &Problem{Reason: conditions.ReasonTargetNotFound, Message: "The listeners of the targets claim no hostname, so the AccessPolicy protects nothing. See their conditions."}
	}
	return r.accessPolicies.conflict(p)
}

// selectsAny reports whether a target of the policy claims a hostname.
func (a *accessPolicies) selectsAny(p *accessPolicy) bool {
	for range a.selected(p) {
		return true
	}
	return false
}

// conflict returns which policies take precedence for some of the targets, or nil.
func (a *accessPolicies) conflict(p *accessPolicy) *Problem {
	lost, wins := map[string]*accessPolicy{}, false
	for hostname, decisive := range a.selected(p) {
		if decisive == p {
			wins = true
		} else {
			lost[hostname] = decisive
		}
	}
	if len(lost) == 0 {
		return nil
	}
	list := message.List{MaxItems: maxHostnames, MaxSize: message.MaxSize / 2}
	for _, hostname := range slices.Sorted(maps.Keys(lost)) {
		list.Add("%s (%s %s)", quoteEvery(hostname), KindAccessPolicy, lost[hostname].name.Name)
	}
	text := "Another AccessPolicy takes precedence, because it has a sectionName, is older or its name comes first: " + list.String() +
		". Delete one of them, or set sectionName to different listeners."
	if wins {
		text += " The AccessPolicy applies to its other targets."
	}
	return &Problem{Reason: conditions.ReasonConflicted, Message: text}
}

// unresolved returns which policies are not in the catalogue, or nil.
func (p *accessPolicy) unresolved(r *Result) *Problem {
	list := message.List{MaxItems: maxHostnames, MaxSize: message.MaxSize / 2}
	for _, name := range p.object.Spec.Policies {
		if _, ok := r.Applications.Catalogue[name]; !ok {
			list.Add("%s", name)
		}
	}
	if list.Len() == 0 {
		return nil
	}
	return &Problem{Reason: conditions.ReasonPolicyNotFound, Message: fmt.Sprintf(
		"The catalogue of the GatewayClass has no policy with the name: %s. Correct spec.policies, or ask the platform team to add the policy to spec.access.policies.", list.String())}
}

// unmanagedPolicyStatuses returns the entries for targets that no Gateway of this controller
// has: each is its own ancestor. owners are the Gateway and the ListenerSets of the report.
// Package status sets the name of the controller.
func unmanagedPolicyStatuses(policies []*v1alpha1.AccessPolicy, owners map[Owner]bool) []AccessPolicyStatus {
	var statuses []AccessPolicyStatus
	for _, object := range policies {
		status := AccessPolicyStatus{}
		status.Namespace, status.Name = object.Namespace, object.Name
		for _, owner := range TargetsOfAccessPolicy(object) {
			if !owners[owner] {
				continue
			}
			c := conditionList{generation: object.Generation}
			c.add(conditions.TypeAccepted, metav1.ConditionFalse, conditions.ReasonTargetNotFound,
				owner.String()+" does not exist, or no Gateway of this controller has it, so the AccessPolicy protects nothing of it. Correct the target, or create the Gateway.")
			status.Ancestors = append(status.Ancestors, gatewayv1.PolicyAncestorStatus{AncestorRef: ancestorRef(owner), Conditions: c.list})
		}
		statuses = append(statuses, status)
	}
	return statuses
}

func ancestorRef(owner Owner) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{
		Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: ptr.To(gatewayv1.Kind(owner.Kind)),
		Namespace: ptr.To(gatewayv1.Namespace(owner.Namespace)), Name: gatewayv1.ObjectName(owner.Name),
	}
}
