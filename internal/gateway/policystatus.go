package gateway

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// PolicyStatus has the entry for the Gateway in the status of one BackendTLSPolicy.
type PolicyStatus struct {
	types.NamespacedName
	// Ancestor is nil if the Gateway's routes do not use the policy.
	Ancestor *gatewayv1.PolicyAncestorStatus
}

// policyStatuses returns the entry of each policy in the snapshot.
func (r *Result) policyStatuses() []PolicyStatus {
	tls := r.translator.backends.tls
	var statuses []PolicyStatus
	for _, p := range tls.all {
		status := PolicyStatus{NamespacedName: p.name}
		if used := r.usedTargets(p); len(used) > 0 && !tls.isFull(p.object) {
			status.Ancestor = r.ancestorStatus(p, used)
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// usedTargets returns the policy's targets whose Services the Gateway's routes use.
func (r *Result) usedTargets(p *backendPolicy) []policyTarget {
	return slices.DeleteFunc(p.targets(), func(t policyTarget) bool { return !r.translator.backends.used[t.service] })
}

func (r *Result) ancestorStatus(p *backendPolicy, used []policyTarget) *gatewayv1.PolicyAncestorStatus {
	c := conditionList{generation: p.object.Generation}
	backends := r.translator.backends
	isEffective := slices.ContainsFunc(used, func(t policyTarget) bool { return backends.tls.byTarget[t] == p && t.exists(backends.services) })
	if !isEffective {
		c.check(conditions.TypeAccepted, backends.targetProblem(p, used), conditions.ReasonAccepted, messagePolicyAccepted)
		return r.newAncestor(c)
	}
	d := backends.tls.decide(p)
	problem := d.invalid
	if problem == nil {
		problem = backends.targetProblem(p, used)
	}
	c.check(conditions.TypeAccepted, problem, conditions.ReasonAccepted, messagePolicyAccepted)
	resolved := messageResolvedRefs
	if d.resolved != "" {
		resolved += " " + d.resolved
	}
	c.check(conditions.TypeResolvedRefs, d.unresolved, conditions.ReasonResolvedRefs, resolved)
	return r.newAncestor(c)
}

const messagePolicyAccepted = "The policy is accepted."

func (r *Result) newAncestor(c conditionList) *gatewayv1.PolicyAncestorStatus {
	return &gatewayv1.PolicyAncestorStatus{
		AncestorRef: gatewayv1.ParentReference{
			Group: ptr.To[gatewayv1.Group](gatewayv1.GroupName), Kind: ptr.To[gatewayv1.Kind](KindGateway),
			Namespace: ptr.To(gatewayv1.Namespace(r.gateway.Namespace)), Name: gatewayv1.ObjectName(r.gateway.Name),
		},
		ControllerName: r.controller, Conditions: c.list,
	}
}

// targetProblem returns the problem with the policy's targets, or nil. The policy still
// applies to its other targets.
func (r backendResolver) targetProblem(p *backendPolicy, used []policyTarget) *Problem {
	conflicts := message.List{MaxSize: message.MaxSize / 2}
	missing := message.List{MaxSize: message.MaxSize / 2}
	for _, t := range used {
		winner := r.tls.byTarget[t]
		switch {
		case winner != p:
			conflicts.Add("%s (BackendTLSPolicy %s)", t, winner.name.Name)
		case !t.exists(r.services):
			missing.Add("%s", t)
		}
	}
	switch {
	case conflicts.Len() > 0:
		return &Problem{Reason: conditions.ReasonConflicted, Message: "Another policy takes precedence, because it is older or its name comes first: " + conflicts.String() + "." + appliesToOthers(conflicts.Len(), used)}
	case missing.Len() > 0:
		return &Problem{Reason: conditions.ReasonTargetNotFound, Message: "A target does not exist: " + missing.String() + ". A sectionName is the name of a TCP port of the Service." + appliesToOthers(missing.Len(), used)}
	}
	return nil
}

func appliesToOthers(affected int, used []policyTarget) string {
	if affected == len(used) {
		return ""
	}
	return " The policy applies to its other targets."
}

// String names the target in a message.
func (t policyTarget) String() string {
	if t.port == "" {
		return "Service " + t.service.Name
	}
	return fmt.Sprintf("port %q of Service %s", t.port, t.service.Name)
}

// PolicyProblems describes the BackendTLSPolicies that the Gateway's routes use and that are
// not valid, with each reason. It omits a condition whose message is part of the message of
// an earlier one.
func (r *Result) PolicyProblems() []string {
	var problems []string
	for _, policy := range r.policies {
		if policy.Ancestor == nil {
			continue
		}
		messages := ""
		for _, c := range policy.Ancestor.Conditions {
			if c.Status == metav1.ConditionFalse && !strings.Contains(messages, c.Message) {
				problems = append(problems, fmt.Sprintf("%s %s: %s: %s", KindBackendTLSPolicy, policy.NamespacedName, c.Reason, c.Message))
				messages += c.Message + "\n"
			}
		}
	}
	return problems
}

// ClientCertificateProblem returns why the Gateway's client certificate is not valid, or
// nil.
func (r *Result) ClientCertificateProblem() *Problem { return r.client.problem }
