package gateway

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// accessReasons are the reasons for AccessReady, the worst first: problems that remain until
// a user acts precede problems that can end on their own.
var accessReasons = []conditions.Reason{
	conditions.ReasonInvalid, conditions.ReasonTargetNotFound, conditions.ReasonHostnameNotPermitted, conditions.ReasonPolicyNotFound,
	conditions.ReasonPolicyInvalid, conditions.ReasonApplicationExists, conditions.ReasonOverridden, conditions.ReasonContested,
	conditions.ReasonLimitExceeded, conditions.ReasonSettingsConflict, conditions.ReasonDisabled, conditions.ReasonForbidden, conditions.ReasonPending,
}

// The messages follow the hostname and a colon.
const (
	messageAccessPending   = "the application or the configuration is outstanding."
	messageNotWritten      = "the controller has not written the tunnel's configuration yet."
	messageStillOpen       = "Until the controller has written the tunnel's configuration, requests without a token reach the backends."
	messageAccessProtected = "An application of Cloudflare Access protects each hostname."
)

// hostnameReports are what the conditions report about hostnames outside the tunnel.
type hostnameReports struct {
	dns    dnsReport
	access accessReport
}

// accessReport is what the conditions report about Access.
type accessReport struct {
	*accessTable // nil while it is not known what the hostnames demand
	push         Push
	// hostnames are the hostnames about which applications decide, sorted. byOwner has the
	// hostnames that the owner's listeners claim.
	hostnames []string
	byOwner   map[Owner][]string
}

func (r *Result) newAccessReport(push Push) accessReport {
	report := accessReport{accessTable: r.accessible, push: push, byOwner: map[Owner][]string{}}
	if r.accessible == nil {
		return report
	}
	for _, hostname := range slices.Sorted(maps.Keys(r.AccessStates)) {
		if !report.isReported(hostname) {
			continue
		}
		owner := report.claimant(hostname).owner
		report.hostnames = append(report.hostnames, hostname)
		report.byOwner[owner] = append(report.byOwner[owner], hostname)
	}
	return report
}

// isReported reports whether a condition is about the hostname. A hostname that uses the
// application of its wildcard is not, unless its state differs.
func (a accessReport) isReported(hostname string) bool {
	state := a.AccessStates[hostname]
	if state.Reason == (conditions.Reason{}) {
		return false
	}
	application := a.Demanded.Demands[hostname].Hostname
	if application == "" || application == hostname {
		return true
	}
	wildcard := a.AccessStates[application]
	return state.Status != wildcard.Status || state.Reason != wildcard.Reason
}

// problem returns why the hostname is not protected as demanded, and false if it is. It says
// whether the hostname is open or closed meanwhile.
func (a accessReport) problem(hostname string) (hostnameProblem, bool) {
	state := a.AccessStates[hostname]
	p := hostnameProblem{hostname: quoteEvery(hostname), reason: state.Reason, message: cmp.Or(state.Message, messageAccessPending)}
	isOutstanding := a.isOutstanding(hostname, &state)
	if state.Reason == conditions.ReasonProtected {
		if !isOutstanding {
			return p, false
		}
		p.reason, p.message = conditions.ReasonPending, messageNotWritten
	}
	_, isDemanded := a.Demanded.Demands[hostname]
	switch {
	case isOutstanding && a.reachesBackends(hostname):
		p.hostname += " (open)"
		p.message += " " + messageStillOpen
	case state.Status == access.Closed:
		p.hostname += " (closed)"
	case state.Status == access.Open && isDemanded:
		p.hostname += " (open)"
	}
	return p, true
}

// isOutstanding reports whether a hostname that must not be open requires something else
// than the tunnel's configuration in effect does.
func (a accessReport) isOutstanding(hostname string, state *access.State) bool {
	return a.push.State != PushSucceeded && a.inEffectKnown && state.Status != access.Open &&
		!a.inEffect.Of(hostname).Equal(state.Requirement())
}

// reachesBackends reports whether the rules in effect serve the hostname without a token.
// With Envoy, a hostname that is to be closed or protected serves no such request. Every
// configuration ends with a rule for every hostname, which serves nothing unless a listener
// has no hostname.
func (a accessReport) reachesBackends(hostname string) bool {
	rule, ok := routing.MostSpecific(a.inEffect, hostname)
	return ok && a.DataPlane == v1alpha1.DataPlaneIngressRules && a.inEffect[rule] == nil && (rule != "" || a.groups[""] != nil)
}

// problems returns the problems of the hostnames with one of the reasons, the worst first.
func (a accessReport) problems(hostnames []string, reasons []conditions.Reason) []hostnameProblem {
	var problems []hostnameProblem
	for _, hostname := range hostnames {
		if p, ok := a.problem(hostname); ok && slices.Contains(reasons, p.reason) {
			problems = append(problems, p)
		}
	}
	sortHostnameProblems(problems, accessReasons)
	return problems
}

// setAccess adds the condition AccessReady for hostnames of one owner. current are the
// conditions in its status, which remain while it is not known what the hostnames demand.
func (c *conditionList) setAccess(report accessReport, hostnames []string, current []metav1.Condition) {
	if report.accessTable == nil {
		c.keep(conditions.TypeAccessReady, current)
		return
	}
	if len(hostnames) == 0 {
		if report.Demanded.Unknown {
			c.keep(conditions.TypeAccessReady, current)
		}
		return
	}
	problems := report.problems(hostnames, accessReasons)
	if len(problems) == 0 {
		c.set(conditions.TypeAccessReady, true, conditions.ReasonProtected, messageAccessProtected)
		return
	}
	c.set(conditions.TypeAccessReady, false, problems[0].reason, describeHostnameProblems(problems, message.MaxSize))
}
