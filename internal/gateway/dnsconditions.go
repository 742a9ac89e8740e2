package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// DNS is what the statuses report about DNS records.
type DNS struct {
	// Known is false until every zone has been read and decided about. The conditions in
	// the status then remain unchanged.
	Known bool
	// Findings are by hostname.
	Findings dns.Findings
}

// dnsReasons are the reasons for DNSReady, the worst first: problems that remain until a
// user acts precede problems that can end on their own.
var dnsReasons = []conditions.Reason{
	conditions.ReasonRecordConflict, conditions.ReasonHostnameNotPermitted, conditions.ReasonHeldByAnotherGateway, conditions.ReasonNotProxied,
	conditions.ReasonNoZone, conditions.ReasonForbidden, conditions.ReasonZoneSettingsConflict, conditions.ReasonQuotaExceeded, conditions.ReasonPending,
}

// maxHostnames is how many hostnames the message of a condition names.
const maxHostnames = 10

// messageUndecided explains that there is no finding yet.
const messageUndecided = "the controller has not compared the hostname with the zone yet. Wait a few seconds."

// certificateMessages are for findings without a message.
var certificateMessages = map[dns.Certificate]string{
	dns.CertificateMissing: "no edge certificate covers it. Order one for it.",
	dns.CertificateUnknown: "the controller cannot read whether an edge certificate covers it. " +
		"Give the API token for DNS the permission SSL and Certificates: Read, or check the certificate in a browser.",
}

// dnsReport is what the conditions of all owners report about DNS.
type dnsReport struct {
	// keep reports whether the current conditions remain, because it is not known what
	// the zones contain.
	keep      bool
	findings  dns.Findings
	hostnames []DNSHostname
	byOwner   map[Owner][]DNSHostname
}

// newDNSReport returns the report. While the settings of the GatewayClass are not valid,
// it is not known whether they ask for conditions, so the current ones remain.
func (r *Result) newDNSReport(o *DNS) dnsReport {
	if invalid := r.DNS.Mode == ""; o == nil || !o.Known || invalid {
		return dnsReport{keep: o != nil || invalid}
	}
	report := dnsReport{findings: o.Findings, byOwner: map[Owner][]DNSHostname{}}
	excluded := hostnames.ParsePermission(strings.Join(r.DNS.Exclude, ","))
	for _, h := range r.DNSHostnames() {
		f, found := o.Findings[h.Name]
		hasRecord := f.Verdict == dns.VerdictManaged || f.Verdict == dns.VerdictStale
		if h.LacksPermission && !hasRecord || !found && excluded.Permits(h.Name) {
			continue
		}
		report.hostnames = append(report.hostnames, h)
		report.byOwner[h.Owner] = append(report.byOwner[h.Owner], h)
	}
	return report
}

// setDNS adds the conditions DNSReady and EdgeCertificateReady for hostnames of one owner.
// current are the conditions in its status.
func (c *conditionList) setDNS(report dnsReport, hostnames []DNSHostname, current []metav1.Condition) {
	switch {
	case report.keep:
		c.keep(conditions.TypeDNSReady, current)
		c.keep(conditions.TypeEdgeCertificateReady, current)
	case len(hostnames) > 0:
		c.setDNSReady(hostnames, report.findings)
		c.setEdgeCertificateReady(hostnames, report.findings, current)
	}
}

// keep adds the current condition, if it exists, with its own generation, because it does
// not describe a newer one.
func (c *conditionList) keep(t conditions.Type, current []metav1.Condition) {
	if existing := t.Find(current); existing != nil {
		kept := *existing
		kept.LastTransitionTime = metav1.Time{}
		c.list = append(c.list, kept)
	}
}

// setDNSReady adds the condition with the reason of the worst hostname.
func (c *conditionList) setDNSReady(hostnames []DNSHostname, findings dns.Findings) {
	var problems []hostnameProblem
	for _, h := range hostnames {
		f, found := findings[h.Name]
		switch {
		case !found:
			problems = append(problems, hostnameProblem{h.Name, conditions.ReasonPending, messageUndecided})
		case f.Reason != conditions.ReasonPublished:
			problems = append(problems, hostnameProblem{h.Name, f.Reason, f.Message})
		}
	}
	if len(problems) == 0 {
		c.set(conditions.TypeDNSReady, true, conditions.ReasonPublished, "A DNS record leads each hostname to the tunnel.")
		return
	}
	sortHostnameProblems(problems, dnsReasons)
	c.set(conditions.TypeDNSReady, false, problems[0].reason, describeHostnameProblems(problems, message.MaxSize))
}

// setEdgeCertificateReady adds the condition for hostnames in a zone. While it is not known
// about any of them, it keeps the current condition.
func (c *conditionList) setEdgeCertificateReady(hostnames []DNSHostname, findings dns.Findings, current []metav1.Condition) {
	byState := map[dns.Certificate][]hostnameProblem{}
	undecided := false
	for _, h := range hostnames {
		f, found := findings[h.Name]
		unread := !found || f.Verdict == dns.VerdictUnread
		undecided = undecided || unread
		if !unread && f.Verdict != dns.VerdictNoZone {
			text := cmp.Or(f.CertificateMessage, certificateMessages[f.Certificate])
			byState[f.Certificate] = append(byState[f.Certificate], hostnameProblem{hostname: h.Name, message: text})
		}
	}
	const size = message.MaxSize / 2 // the conditions of an object share a maximum size
	switch missing, unknown := byState[dns.CertificateMissing], byState[dns.CertificateUnknown]; {
	case len(missing) > 0:
		sortHostnameProblems(missing, dnsReasons)
		c.set(conditions.TypeEdgeCertificateReady, false, conditions.ReasonNotCovered, describeHostnameProblems(missing, size))
	case len(unknown) > 0:
		sortHostnameProblems(unknown, dnsReasons)
		c.add(conditions.TypeEdgeCertificateReady, metav1.ConditionUnknown, conditions.ReasonNotChecked, describeHostnameProblems(unknown, size))
	case len(byState) > 0:
		c.set(conditions.TypeEdgeCertificateReady, true, conditions.ReasonCovered, "An edge certificate covers each hostname.")
	case undecided:
		c.keep(conditions.TypeEdgeCertificateReady, current)
	}
}

// hostnameProblem is a problem with one hostname. The message follows the hostname and a
// colon.
type hostnameProblem struct {
	hostname string
	reason   conditions.Reason
	message  string
}

// sortHostnameProblems sorts the worst problems first, and equal messages together. reasons
// are the reasons, the worst first.
func sortHostnameProblems(problems []hostnameProblem, reasons []conditions.Reason) {
	rank := func(p hostnameProblem) int { return slices.Index(reasons, p.reason) }
	slices.SortFunc(problems, func(a, b hostnameProblem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.message, b.message), cmp.Compare(a.hostname, b.hostname))
	})
}

// describeHostnameProblems names at most [maxHostnames] hostnames, and only as many as
// fit into the size. The problems are sorted.
func describeHostnameProblems(problems []hostnameProblem, size int) string {
	for n := min(maxHostnames, len(problems)); ; n-- {
		text := joinHostnameProblems(problems[:n])
		if n < len(problems) {
			text += fmt.Sprintf(" And %d more.", len(problems)-n)
		}
		if n == 1 || message.Size(text) <= size {
			return text
		}
	}
}

// joinHostnameProblems lists the hostnames, the ones with the same message together.
func joinHostnameProblems(problems []hostnameProblem) string {
	var text strings.Builder
	for i, p := range problems {
		switch {
		case i == 0:
		case p.message == problems[i-1].message:
			text.WriteString(", ")
		default:
			text.WriteString(": " + problems[i-1].message + " ")
		}
		text.WriteString(p.hostname)
	}
	return text.String() + ": " + problems[len(problems)-1].message
}
