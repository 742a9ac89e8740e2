package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// writeSettings prints the settings merged from the GatewayClass and the Gateway in one
// line. It prints nothing if they are not valid.
func (g *Gateway) writeSettings(out io.Writer, style Style) {
	if s := g.result.Settings; s != nil {
		plane := ""
		if c := g.DataPlaneChange; c != nil {
			plane = fmt.Sprintf("data plane %s, ", c.settingsText(g.DataPlane))
		} else if g.DataPlane != v1alpha1.DataPlaneIngressRules {
			plane = fmt.Sprintf("data plane %s, ", g.DataPlane)
		}
		terminal.Printf(out, "Settings: %s%s, protocol %s, %s\n", plane, describeReplicas(s), s.Protocol(), describeAccess(g.result.Table, style))
	}
}

func describeReplicas(s *settings.Settings) string {
	if !s.RunsConnectors() {
		return "no replicas (connector.enabled is false)"
	}
	least, most := connector.Replicas(ptr.Deref(s.Spec.Connector, v1alpha1.Connector{}))
	if least == most {
		return fmt.Sprintf("replicas %d", least)
	}
	return fmt.Sprintf("replicas %d to %d", least, most)
}

// describeAccess lists the hostnames that require Cloudflare Access tokens.
func describeAccess(t *routing.Table, style Style) string {
	var required []string
	if t != nil {
		for _, hostname := range slices.SortedFunc(maps.Keys(t.Access), routing.CompareGroups) {
			switch access := t.Access[hostname]; {
			case access.IsClosed():
				required = append(required, orStar(hostname)+" (closed)")
			case access != nil:
				required = append(required, fmt.Sprintf("%s (team %s)", orStar(hostname), access.TeamName))
			}
		}
	}
	if len(required) == 0 {
		return "Access not required"
	}
	return "Access required for " + style.abbreviate(required)
}
