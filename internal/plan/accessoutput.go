package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// messageApplicationsNotRead explains why the hostnames of a plan without an account are
// closed.
const messageApplicationsNotRead = "The applications of Cloudflare Access have not been read. A hostname with the reason Pending is closed " +
	"until the controller has created its application; then its visitors must log in. A running controller keeps a hostname that is open now " +
	"open for up to five minutes meanwhile."

// messageAssumed is about a hostname whose application [Plan.AssumingApplications] assumes.
const messageAssumed = "plan has not read whether the application exists. Until the controller has created it, the hostname is closed, and requests get 403."

// writeAccess prints the hostnames for which an application is demanded.
func (g *Gateway) writeAccess(out *terminal.Columns) {
	header := false
	for i := range g.Access {
		h := &g.Access[i]
		if h.Demand == nil {
			continue
		}
		if !header {
			fmt.Fprintln(out, "  HOSTNAME\tACCESS\tPOLICIES\tSESSION\tAPPLICATION\tDEMANDED BY"+rowMark)
			header = true
		}
		terminal.Printf(out, "  %s\t%s\t%s\t%s\t%s\t%s"+terminal.MarkRow(h.isProblem())+"\n", h.Hostname, h.text(), strings.Join(h.Demand.Policies, ", "),
			strings.TrimSuffix(h.Demand.SessionDuration, "0m0s"), h.Demand.Application, h.Demand)
	}
	flush(out)
	if g.waitsForApplications() {
		g.writeRemark(out, messageApplicationsNotRead+" With --diff, plan reads the applications.")
	}
}

// waitsForApplications reports whether a hostname is pending only because the applications
// were not read.
func (g *Gateway) waitsForApplications() bool {
	return !g.applicationsRead && slices.ContainsFunc(g.Access, func(h HostnameAccess) bool { return h.Demand != nil && h.isPending() })
}

// String names what demands the application.
func (d *AccessDemand) String() string {
	text := d.Object
	if d.Level == gateway.KindAccessPolicy {
		return text
	}
	if d.Entry != "" {
		text += ", entry for " + d.Entry
	}
	return fmt.Sprintf("%s (%s)", text, d.Level)
}

// writeAccessProblems prints the hostnames for whose protection a user has to act, and the
// AccessPolicies that have no effect.
func (g *Gateway) writeAccessProblems(out io.Writer, style Style) {
	var lines problemLines
	for i := range g.Access {
		if h := &g.Access[i]; h.isProblem() {
			lines.add(orStar(h.Hostname), h.problemText())
		}
	}
	for _, p := range g.accessPolicyProblems {
		lines.add(p.Owner.String(), fmt.Sprintf(": %s: %s", p.Reason, p.Message))
	}
	lines.write(out, style)
}

// problemText describes why a user has to act. It follows the hostname.
func (h *HostnameAccess) problemText() string {
	return fmt.Sprintf(": Access: %s: %s", h.text(), h.Message)
}

// reportedByHostname are the reasons for conditions of AccessPolicies that the lines about
// hostnames report.
var reportedByHostname = []conditions.Reason{
	conditions.ReasonPending, conditions.ReasonHostnameNotPermitted, conditions.ReasonPolicyNotFound, conditions.ReasonPolicyInvalid,
	conditions.ReasonApplicationExists, conditions.ReasonContested, conditions.ReasonSettingsConflict, conditions.ReasonDisabled,
	conditions.ReasonForbidden, conditions.ReasonLimitExceeded,
}

// newAccessPolicyProblems returns the problems in the report that no line about a hostname
// reports.
func newAccessPolicyProblems(report gateway.Report) []Problem {
	var problems []Problem
	for _, policy := range report.AccessPolicies {
		for _, ancestor := range policy.Ancestors {
			c := firstUnexpected(ancestor.Conditions)
			if c == nil || slices.ContainsFunc(reportedByHostname, func(r conditions.Reason) bool { return r.Is(c) }) {
				continue
			}
			owner := Owner{Kind: gateway.KindAccessPolicy, Namespace: policy.Namespace, Name: policy.Name}
			problems = append(problems, Problem{owner, c.Type, c.Reason, c.Message})
		}
	}
	return problems
}

// isPendingAccess reports whether the condition only says that applications are outstanding.
func isPendingAccess(kind string, c *metav1.Condition) bool {
	return conditions.ReasonPending.Is(c) && (c.Type == conditions.TypeAccessReady.String() ||
		kind == gateway.KindAccessPolicy && c.Type == conditions.TypeProgrammed.String())
}

// writeAccounts prints what [Plan.ReadApplications] found.
func (p *Plan) writeAccounts(out io.Writer, color bool) {
	for i := range p.Accounts {
		p.Accounts[i].write(out, color)
	}
}

func (a *Account) write(out io.Writer, color bool) {
	remark := func(text string) {
		terminal.Printf(out, "Applications of account %s: %s\n", cmp.Or(a.ID, "(unknown)"), text)
	}
	switch {
	case a.Problem != "":
		remark("not compared: " + a.Problem)
		return
	case len(a.Changes) == 0:
		remark("no difference")
	default:
		remark("the controller would change these applications")
	}
	for _, c := range a.Changes {
		c.write(out, color)
	}
	if len(a.Orphans) > 0 {
		remark("applications of the controller without a Tunnel object: " + strings.Join(a.Orphans, ", "))
	}
}

// write prints the change in the form of a diff.
func (c ApplicationChange) write(out io.Writer, color bool) {
	sign, start := "~", terminal.Cyan
	switch access.Operation(c.Operation) {
	case access.Create:
		sign, start = "+", terminal.Green
	case access.Delete:
		sign, start = "-", terminal.Red
	case access.Update, access.Revoke, access.EnsureTag:
	}
	end := terminal.Reset
	if !color {
		start, end = "", ""
	}
	_, _ = io.WriteString(out, start)
	terminal.Printf(out, "%s %s application %s (Gateway %s)", sign, c.Operation, c.Hostname, c.Gateway)
	_, _ = io.WriteString(out, end+"\n")
}
