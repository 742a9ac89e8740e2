package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// TableEntry is a routing table entry with its action.
type TableEntry struct {
	Entry
	// Action describes what happens to a matching request.
	Action string `json:"action"`
	// Failure is why the entry returns an error; empty if it does not.
	Failure string `json:"failure,omitempty"`
	// Access is the Cloudflare Access token that requests for the hostname must have;
	// nil if they need none.
	Access *provider.AccessSettings `json:"access,omitempty"`
	// OriginRequest are the settings on the entry's listeners; nil if there are none.
	OriginRequest *v1alpha1.OriginRequest `json:"originRequest,omitempty"`
}

// newTableEntries returns the entries in a table that Envoy serves, and an empty list
// for another data plane or without a table.
func newTableEntries(r *gateway.Result) []TableEntry {
	entries := []TableEntry{}
	if r.DataPlane != v1alpha1.DataPlaneEnvoy || r.Table == nil {
		return entries
	}
	for _, row := range tableRows(r.Table) {
		if row.isEntry {
			entries = append(entries, row.TableEntry)
		}
	}
	return entries
}

// tableRow is an entry, or a hostname that nothing serves.
type tableRow struct {
	TableEntry
	isEntry bool
}

// tableRows returns a table's rows: for each hostname, the narrowest first, the entries
// that requests can reach, in the order in which they are tried. It repeats the entries
// for a wider hostname only below a hostname with other Access settings.
func tableRows(t *routing.Table) []tableRow {
	groups := map[string]struct{}{}
	for i := range t.Groups {
		groups[t.Groups[i].Hostname] = struct{}{}
	}
	hasOtherAccess := map[string]bool{}
	for _, hostnames := range routing.SeparateHostnames(groups, t.Access) {
		for _, hostname := range hostnames {
			hasOtherAccess[hostname] = true
		}
	}
	var rows []tableRow
	for _, host := range t.Hosts() {
		access := ingress.RenderAccess(host.Access)
		if len(host.Entries) == 0 {
			rows = append(rows, tableRow{TableEntry: TableEntry{
				Entry: Entry{Hostname: host.Hostname, Match: "every path"}, Action: "status 404", Access: access,
			}})
		}
		for _, e := range host.Reachable(func(_, _ *routing.Entry) {}) {
			if e.Hostname == host.Hostname || hasOtherAccess[host.Hostname] {
				rows = append(rows, newTableRow(e, host.Hostname, access, t.ClusterDomain))
			}
		}
	}
	return rows
}

func newTableRow(e *routing.Entry, hostname string, access *provider.AccessSettings, clusterDomain string) tableRow {
	row := tableRow{isEntry: true, TableEntry: TableEntry{
		Entry: newEntry(e), Action: describeAction(e.Action, clusterDomain), Access: access, OriginRequest: e.OriginRequest,
	}}
	row.Hostname = hostname
	if e.Action.Problem != nil {
		row.Failure = e.Action.Problem.Cause
	}
	return row
}

// describeAction describes an action for every request, for example "http://a:80 (weight
// 90), http://b:80 (weight 10); request timeout 10s".
func describeAction(a *routing.Action, clusterDomain string) string {
	var parts []string
	switch {
	case a.Forward != nil:
		parts = append(parts, describeBackends(a.Forward.Backends, clusterDomain))
		parts = append(parts, requestChanges(a.Forward.Filters, describePathChange, clusterDomain)...)
		parts = append(parts, policies(a.Forward)...)
	case a.Redirect != nil:
		parts = append(parts, describeRedirect(a.Redirect))
	default:
		parts = append(parts, fmt.Sprintf("status %d", a.Status))
	}
	parts = append(parts, headerChanges("response", a.Response)...)
	if a.CORS != nil {
		parts = append(parts, describeCORS(a.CORS))
	}
	return strings.Join(parts, "; ")
}

func describeBackends(backends []routing.WeightedBackend, clusterDomain string) string {
	all := make([]string, len(backends))
	for i, b := range backends {
		all[i] = b.Backend.Describe(clusterDomain)
		if b.Status != 0 {
			all[i] = fmt.Sprintf("status %d", b.Status)
		}
		var details []string
		if len(backends) > 1 {
			details = append(details, fmt.Sprintf("weight %d", b.Weight))
		}
		details = append(details, requestChanges(b.Filters, describePathChange, clusterDomain)...)
		details = append(details, headerChanges("response", b.Response)...)
		if len(details) > 0 {
			all[i] += fmt.Sprintf(" (%s)", strings.Join(details, "; "))
		}
	}
	return strings.Join(all, ", ")
}

func describePathChange(c *routing.PathChange) string {
	if c.Prefix {
		return fmt.Sprintf("path prefix replaced by %q", c.Value)
	}
	return fmt.Sprintf("path replaced by %q", c.Value)
}

func describeRedirect(r *routing.Redirect) string {
	parts := []string{fmt.Sprintf("redirect %d", r.Status)}
	if r.Scheme != "" {
		parts = append(parts, "scheme "+r.Scheme)
	}
	if r.Hostname != "" {
		parts = append(parts, "host "+r.Hostname)
	}
	if port := r.LocationPort(""); port != 0 {
		parts = append(parts, fmt.Sprintf("port %d", port))
	}
	if r.Path != nil {
		parts = append(parts, describePathChange(r.Path))
	}
	return strings.Join(parts, ", ")
}

func describeCORS(c *routing.CORS) string {
	parts := []string{"CORS headers for " + strings.Join(c.AllowOrigins, ", ")}
	add := func(name string, values []string) {
		if len(values) > 0 {
			parts = append(parts, name+" "+strings.Join(values, ", "))
		}
	}
	add("methods", c.AllowMethods)
	add("headers", c.AllowHeaders)
	add("exposed", c.ExposeHeaders)
	if c.AllowCredentials {
		parts = append(parts, "with credentials")
	}
	return strings.Join(append(parts, fmt.Sprintf("max age %s", c.MaxAge)), ", ")
}

// writeEntries prints the entries that Envoy serves. It prints the column ACCESS only if a
// hostname requires a token.
func (g *Gateway) writeEntries(out *terminal.Columns) {
	rows := tableRows(g.result.Table)
	protected := slices.ContainsFunc(rows, func(r tableRow) bool { return r.Access != nil })
	if protected {
		fmt.Fprintln(out, "  #\tHOSTNAME\tMATCH\tACTION\tACCESS\tFROM"+rowMark)
	} else {
		fmt.Fprintln(out, "  #\tHOSTNAME\tMATCH\tACTION\tFROM"+rowMark)
	}
	for i := range rows {
		row := &rows[i]
		terminal.Printf(out, "  %d\t%s\t%s\t%s\t", i, orStar(row.Hostname), row.matchWithScheme(), row.Action)
		if protected {
			team := ""
			if row.Access != nil {
				team = row.Access.TeamName
			}
			terminal.Printf(out, "%s\t", team)
		}
		terminal.Printf(out, "%s"+terminal.MarkRow(row.Failure != "")+"\n", row.source())
	}
	flush(out)
}

// source describes where a row comes from, and why it returns an error.
func (r *tableRow) source() string {
	switch {
	case !r.isEntry:
		return "no route"
	case r.Failure != "":
		return fmt.Sprintf("%s rule %d (%s)", r.Route, r.Rule, r.Failure)
	default:
		return fmt.Sprintf("%s rule %d", r.Route, r.Rule)
	}
}

// line describes a row in one line, with everything on which its requests depend.
func (r *tableRow) line() string {
	text := fmt.Sprintf("%s %s -> %s", orStar(r.Hostname), r.matchWithScheme(), r.Action)
	if r.Access != nil {
		text += fmt.Sprintf("; Access of team %s, AUD tag %s", r.Access.TeamName, strings.Join(r.Access.AUDTag, " or "))
	}
	if r.OriginRequest != nil {
		text += "; originRequest " + compact(r.OriginRequest)
	}
	return fmt.Sprintf("%s [%s]", text, r.source())
}

// compact returns the settings in one line.
func compact(settings any) string {
	text, _ := json.Marshal(settings) // strings, integers and booleans always marshal
	return string(text)
}
