package dns

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// Assemble returns the findings for the Gateway in all zones that its settings list.
// reports are by zone name. complete is false while a zone that contains hostnames of the
// Gateway was not read, or not processed since the Gateway exists; the findings of the
// other zones are returned. Excluded hostnames have no finding.
func Assemble(g Gateway, s settings.DNS, reports map[string]Report) (all Findings, complete bool) {
	all, complete = Findings{}, true
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
		findings, decided := reports[zone].Gateways[g.NamespacedName]
		complete = complete && decided
		if f, ok := findings[h.Name]; ok {
			all[h.Name] = f
		}
	}
	return all, complete
}

const noListedZone = "no zone in dns.zones contains the hostname. List its zone, or exclude the hostname."
