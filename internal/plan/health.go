package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Healthy reports whether every condition that the controller sets has its expected
// status, no Gateway has a warning or a data plane change that cannot begin, no route
// names a hostname that another listener claims or that no listener has, no object has a mistake, and, after
// [Plan.CompareZones], no hostname has a conflicting record or conflicting settings, no
// zone or no edge certificate. It does not consider rules that no request reaches. It
// ignores applications of Cloudflare Access that the controller is still to create. It
// returns false if the plan has no Gateway and no reported status, because this results in
// no conditions. A status in the cluster must be about the present version of its object.
func (p *Plan) Healthy() bool {
	if len(p.Gateways)+len(p.Reported) == 0 || len(p.Mistakes) > 0 {
		return false
	}
	if slices.ContainsFunc(p.Reported, func(r ReportedStatus) bool { return !r.Healthy() }) {
		return false
	}
	for i := range p.Gateways {
		g := &p.Gateways[i]
		if len(g.Warnings) > 0 || len(g.result.ClaimedHostnames)+len(g.unservedHostnames) > 0 || g.DataPlaneChange != nil && g.DataPlaneChange.Reason != "" {
			return false
		}
		if slices.ContainsFunc(g.Records, func(r Record) bool { return !r.isHealthy() }) {
			return false
		}
	}
	for _, status := range p.Statuses {
		if slices.ContainsFunc(status.conditions, func(c []metav1.Condition) bool { return firstProblem(status.Kind, c) != nil }) {
			return false
		}
	}
	return true
}

// firstUnexpected returns the first condition that does not have its expected status,
// in the order of [conditions.Types], or nil.
func firstUnexpected(list []metav1.Condition) *metav1.Condition {
	for _, t := range conditions.Types {
		if c := t.Find(list); c != nil && c.Status != t.Expected() {
			return c
		}
	}
	return nil
}

// firstProblem returns the first condition of an object that does not have its expected
// status, or nil. It ignores a condition which only says that applications of Cloudflare
// Access are outstanding.
func firstProblem(kind string, list []metav1.Condition) *metav1.Condition {
	return firstUnexpected(slices.DeleteFunc(slices.Clone(list), func(c metav1.Condition) bool { return isPendingAccess(kind, &c) }))
}
