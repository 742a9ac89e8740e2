package plan

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// DataPlaneChange is a change to a Gateway's data plane that is in progress, or that
// the settings ask for.
type DataPlaneChange struct {
	// To is the data plane that the settings ask for.
	To v1alpha1.DataPlane `json:"to"`
	// Recorded is the change that the Tunnel records; nil if the change has not begun.
	// It is reversed if it leads to another data plane than To.
	Recorded *v1alpha1.DataPlaneChange `json:"recorded,omitempty"`
	// Reason and Message are why the change does not begin until a user acts; empty if
	// it does.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Routes are the routes that have a different status with the data plane To.
	Routes []RouteChange `json:"routes"`

	// progress is what a recorded change waits for, according to the Tunnel.
	progress string
	// instead is the data plane without the what-if; empty if there is none.
	instead v1alpha1.DataPlane
}

// RouteChange is a route whose status differs after the data plane has changed.
type RouteChange struct {
	Route Owner `json:"route"`
	// Status is the route's status after the change.
	Status gatewayv1.RouteStatus `json:"status"`

	before, after []string // lines about the route's problems
}

// newDataPlaneChange returns the change to a Gateway's data plane, or nil.
func newDataPlaneChange(g *Gateway) *DataPlaneChange {
	f := g.facts
	c := &DataPlaneChange{To: g.result.Settings.DataPlane(), Routes: []RouteChange{}}
	if g.before != nil && g.before.DataPlane != g.result.DataPlane {
		c.instead = g.before.DataPlane
	}
	if g.other() == nil || f.Object == nil {
		if c.instead == "" {
			return nil
		}
		return c
	}
	c.Recorded = f.Object.Status.DataPlaneChange
	if change := g.outcome.DataPlaneChange; change != nil && change.Reason.RequiresAction() {
		c.Reason, c.Message = change.Reason.String(), change.Message
	}
	if condition := conditions.TypeTunnelDataPlaneApplied.Find(f.Object.Status.Conditions); c.Recorded != nil && condition != nil {
		c.progress = condition.Message
	}
	return c
}

// setRoutes sets the routes whose status differs with the data plane in the settings.
func (c *DataPlaneChange) setRoutes(g *Gateway, s *statuses) {
	var before, after map[gateway.Owner][]string
	var changed map[gateway.Owner]gatewayv1.RouteStatus
	if c.instead != "" {
		before, after = g.routeProblemLines(g.before), g.routeProblemLines(g.result)
		changed = s.changedRoutes(g.before.Report(g.reportedOutcome))
		for id := range changed { // the statuses contain those of the what-if
			changed[id] = s.routeStatus(id)
		}
	} else {
		other := g.other().Result
		if c.To != other.DataPlane {
			return // the data plane in the settings is in effect
		}
		before, after = g.routeProblemLines(g.result), g.routeProblemLines(other)
		changed = s.changedRoutes(other.Report(g.reportedOutcome))
	}
	for id, status := range changed {
		c.Routes = append(c.Routes, RouteChange{Route: newOwner(id), Status: status, before: before[id], after: after[id]})
	}
	slices.SortFunc(c.Routes, func(a, b RouteChange) int { return compareOwners(a.Route, b.Route) })
}

// routeProblemLines returns the lines about the problems of each route.
func (g *Gateway) routeProblemLines(r *gateway.Result) map[gateway.Owner][]string {
	all := map[gateway.Owner][]string{}
	for _, route := range r.Routes {
		var out bytes.Buffer
		g.writeRouteProblems(terminal.NewLines(&out, false), []*gateway.Route{route}, Style{})
		id := gateway.Owner{Kind: route.Kind, NamespacedName: route.NamespacedName}
		all[id] = slices.Collect(strings.Lines(out.String()))
	}
	return all
}

// settingsText describes the change in the line about the settings. current is the data
// plane in effect.
func (c *DataPlaneChange) settingsText(current v1alpha1.DataPlane) string {
	switch {
	case c.instead != "":
		return fmt.Sprintf("%s (instead of %s)", current, c.instead)
	case c.Recorded != nil && c.Recorded.To == current:
		return fmt.Sprintf("%s (phase %s)", current, c.Recorded.Phase)
	case c.Recorded != nil:
		return fmt.Sprintf("%s (changing to %s, phase %s)", current, c.Recorded.To, c.Recorded.Phase)
	case c.Message != "":
		return fmt.Sprintf("%s (does not change to %s)", current, c.To)
	default:
		return fmt.Sprintf("%s (changes to %s)", current, c.To)
	}
}

// maxRouteChanges is how many routes a table lists, unless its style is wide.
const maxRouteChanges = 10

// writeChange prints what happens to the data plane and to the routes.
func (g *Gateway) writeChange(out io.Writer, style Style) {
	c := g.DataPlaneChange
	if c == nil {
		return
	}
	switch {
	case c.Message != "":
		g.writeProblem(out, fmt.Sprintf("%s: %s", c.Reason, c.Message))
	case c.Recorded != nil && c.Recorded.To != c.To:
		g.writeRemark(out, fmt.Sprintf("The controller reverses the data plane change to %s, because the settings ask for %s.", c.Recorded.To, c.To))
	case c.progress != "":
		g.writeRemark(out, fmt.Sprintf("The data plane changes to %s: %s", c.To, c.progress))
	}
	if c.To != g.DataPlane || c.instead != "" {
		c.writeRoutes(out, style)
	}
}

func (c *DataPlaneChange) writeRoutes(out io.Writer, style Style) {
	if len(c.Routes) == 0 {
		terminal.Printf(out, "With %s, every route has the same status.\n", c.To)
		return
	}
	terminal.Printf(out, "With %s, %d %s a different status (- now, + after the change):\n", c.To, len(c.Routes), haveRoutes(len(c.Routes)))
	for i := range c.Routes {
		if r := &c.Routes[i]; i < maxRouteChanges || style.Wide {
			r.write(out)
			continue
		}
		terminal.Printf(out, "%d more; --wide lists them\n", len(c.Routes)-i)
		return
	}
}

func haveRoutes(n int) string {
	if n == 1 {
		return "route has"
	}
	return "routes have"
}

// write prints the problems that the route has only before or only after the change.
func (r *RouteChange) write(out io.Writer) {
	for _, line := range r.before {
		if !slices.Contains(r.after, line) {
			fmt.Fprintf(out, "- %s", line)
		}
	}
	for _, line := range r.after {
		if !slices.Contains(r.before, line) {
			fmt.Fprintf(out, "+ %s", line)
		}
	}
}
