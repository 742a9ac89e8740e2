package dns

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// Assemble returns the findings for the Gateway in all zones that its settings list.
// reports are by zone name. It returns false while one of the zones that have hostnames of
// the Gateway was not read, or is not decided about since the Gateway exists. Excluded hostnames have no finding.
func Assemble(g Gateway, s settings.DNS, reports map[string]Report) (Findings, bool) {
	all := Findings{}
	if s.Mode == v1alpha1.DNSOff {
		return all, true
	}
	excluded := newExclusion(s)
	for _, h := range g.Hostnames {
		zone, ok := ZoneOf(s, h.Name)
		switch {
		case excluded.Permits(h.Name):
			continue
		case !ok:
			all[h.Name] = Finding{Verdict: VerdictNoZone, Reason: conditions.ReasonNoZone, Message: noListedZone}
			continue
		}
		findings, ok := reports[zone].Gateways[g.NamespacedName]
		if !ok {
			return nil, false
		}
		if f, ok := findings[h.Name]; ok {
			all[h.Name] = f
		}
	}
	return all, true
}

const noListedZone = "no zone in dns.zones contains the hostname. List its zone, or exclude the hostname."
