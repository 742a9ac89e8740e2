package plan

import (
	"io"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// certificateNames are the reasons of EdgeCertificateReady.
var certificateNames = map[dns.Certificate]string{
	dns.CertificateCovers:  conditions.ReasonCovered.String(),
	dns.CertificateMissing: conditions.ReasonNotCovered.String(),
	dns.CertificateUnknown: conditions.ReasonNotChecked.String(),
}

// failingVerdicts are the verdicts that a user has to act on before the hostname works:
// plan --strict fails.
var failingVerdicts = []string{string(dns.VerdictRecordConflict), string(dns.VerdictHeldByAnotherGateway), string(dns.VerdictNoZone)}

// isHealthy reports whether plan --strict accepts the record. It accepts what is not known,
// and records that the controller or a user is still to create.
func (r *Record) isHealthy() bool {
	return !slices.Contains(failingVerdicts, r.Verdict) && r.Reason != conditions.ReasonZoneSettingsConflict.String() &&
		r.Certificate != conditions.ReasonNotCovered.String()
}

// changesRecords reports whether the controller would change records. With Observe, it
// changes none.
func (z *Zone) changesRecords() bool { return z.Mode == v1alpha1.DNSManage && len(z.Changes) > 0 }

// writeZones prints what [Plan.CompareZones] found.
func (p *Plan) writeZones(out io.Writer, color bool) {
	for i := range p.Zones {
		p.Zones[i].write(out, color)
	}
	for i := range p.Gateways {
		p.Gateways[i].writeRecords(out, p.Zones)
	}
}

func (z *Zone) write(out io.Writer, color bool) {
	remark := func(text string) { terminal.Printf(out, "Zone %s: %s\n", z.Name, text) }
	switch {
	case z.Problem != "":
		remark("not compared: " + z.Problem)
		return
	case len(z.Changes) == 0:
		remark("no difference")
	case z.Mode == v1alpha1.DNSObserve:
		remark("with dns.mode Manage, the controller would change these records")
	default:
		remark("the controller would change these records")
	}
	for _, c := range z.Changes {
		c.write(out, color)
	}
	if len(z.Orphans) > 0 {
		remark("records of the controller without a Tunnel object: " + strings.Join(z.Orphans, ", "))
	}
}

// write prints the change in the form of a diff.
func (c RecordChange) write(out io.Writer, color bool) {
	sign, start, end := "~", "", ""
	switch dns.Operation(c.Operation) {
	case dns.Create:
		sign, start = "+", terminal.Green
	case dns.Delete:
		sign, start = "-", terminal.Red
	case dns.Repair, dns.Move, dns.Adopt, dns.Release:
		start = terminal.Cyan
	}
	if color {
		end = terminal.Reset
	} else {
		start = ""
	}
	_, _ = io.WriteString(out, start)
	terminal.Printf(out, "%s %s %s (Gateway %s)", sign, c.Operation, c.Name, c.Gateway)
	_, _ = io.WriteString(out, end+"\n")
}

// writeRecords prints the hostnames that are not published, except those whose record the
// controller is about to change, and those without an edge certificate.
func (g *Gateway) writeRecords(out io.Writer, zones []Zone) {
	changes := func(name string) bool {
		is := func(c RecordChange) bool { return c.Name == name && c.Gateway == g.Namespace+"/"+g.Name }
		return slices.ContainsFunc(zones, func(z Zone) bool { return slices.ContainsFunc(z.Changes, is) })
	}
	for _, r := range g.Records {
		switch {
		case r.Reason == "", r.Reason == conditions.ReasonPublished.String(), changes(r.Hostname):
		default:
			g.writeRemark(out, r.Hostname+": "+r.Reason+": "+r.Message)
		}
		if r.Certificate == conditions.ReasonNotCovered.String() {
			g.writeRemark(out, r.Hostname+": "+r.Certificate+": "+r.certificateMessage)
		}
	}
}

// WriteDNSWarnings prints what the DNS settings of GatewayClasses permit every namespace
// to do.
func (p *Plan) WriteDNSWarnings(w io.Writer) {
	warned := map[string]bool{}
	for i := range p.Gateways {
		g := &p.Gateways[i]
		if text := g.result.DNS.Warning(); text != "" && !warned[g.class.Name] {
			warned[g.class.Name] = true
			terminal.Printf(w, "warning: GatewayClass %s: %s\n", g.class.Name, text)
		}
	}
}
