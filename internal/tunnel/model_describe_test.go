package tunnel

import (
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// describe describes a step in a trace.
func (s Step) describe() string {
	var b strings.Builder
	b.WriteString(string(s.Action))
	if s.Action == Wait {
		fmt.Fprintf(&b, " %s", s.Delay)
	}
	if s.Connector != "" {
		fmt.Fprintf(&b, " %s", s.Connector)
	}
	if s.Action == Configure {
		fmt.Fprintf(&b, " %s", configurations[configurationOf(s.Hash)].Ingress[0].Hostname)
	}
	if r := s.Record; r != nil {
		fmt.Fprintf(&b, " (record: %s)", describeRecord(*r))
	}
	if s.Problem != nil {
		fmt.Fprintf(&b, " [%s]", s.Problem.Reason)
	}
	return b.String()
}

func describeRecord(r v1alpha1.TunnelStatus) string {
	var list []string
	flag := func(set bool, name string) {
		if set {
			list = append(list, name)
		}
	}
	flag(r.TunnelID != "", "tunnel "+r.TunnelID)
	flag(r.GatewayUID != "", "gateway "+r.GatewayUID)
	flag(r.DataPlane != "", string(r.DataPlane))
	if change := r.DataPlaneChange; change != nil {
		list = append(list, fmt.Sprintf("change to %s: %s", change.To, change.Phase))
	}
	flag(r.Creating, "creating")
	flag(r.Deleting, "deleting")
	flag(r.Contested, "contested")
	flag(r.HTTP2, "http2")
	name := func(hash string) string {
		if hash == "" {
			return "-"
		}
		switch n := configurationOf(hash); n {
		case 0:
			return "none"
		case revokedConfigurationIndex:
			return "revoked"
		default:
			return configurations[n].Ingress[0].Hostname[:2]
		}
	}
	if c := r.Configuration; c != (v1alpha1.ConfigurationRecord{}) {
		list = append(list, fmt.Sprintf("configuration %s/%s/%s", name(c.Hash), name(c.Previous), name(c.Late)))
	}
	flag(r.Token.Phase != "", string(r.Token.Phase))
	return strings.Join(list, ", ")
}

func describeStatus(s v1alpha1.TunnelStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", s.Phase, s.Connectors.Summary)
	for _, c := range s.Conditions {
		fmt.Fprintf(&b, "; %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}
