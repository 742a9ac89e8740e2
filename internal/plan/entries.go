package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
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
	// Backends are the backends in the Action.
	Backends []ActionBackend `json:"backends,omitempty"`
	// Failure is why the entry returns an error; empty if it does not.
	Failure string `json:"failure,omitempty"`
	// Access is the Cloudflare Access token that requests for the hostname must have;
	// nil if they need none.
	Access *provider.AccessSettings `json:"access,omitempty"`
	// OriginRequest are the settings on the entry's listeners; nil if there are none.
	OriginRequest *v1alpha1.OriginRequest `json:"originRequest,omitempty"`
}

// newTableEntries returns the entries in the table that requests can reach, and an empty
// list without a table.
func newTableEntries(t *routing.Table) []TableEntry {
	entries := []TableEntry{}
	if t == nil {
		return entries
	}
	for _, row := range tableRows(t) {
		if row.isEntry {
			entries = append(entries, row.TableEntry)
		}
	}
	return entries
}

// tableRow is an entry, or a hostname that nothing serves or that is closed.
type tableRow struct {
	TableEntry
	isEntry, isClosed bool
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
		if host.Access.IsClosed() {
			rows = append(rows, tableRow{TableEntry: TableEntry{
				Entry: Entry{Hostname: host.Hostname, Match: "every path"}, Action: "status 403",
			}, isClosed: true})
			continue
		}
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
	action := newAction(e.Action, clusterDomain)
	row := tableRow{isEntry: true, TableEntry: TableEntry{
		Entry: newEntry(e), Action: action.String(), Backends: action.Backends, Access: access, OriginRequest: e.OriginRequest,
	}}
	row.Hostname = hostname
	if e.Action.Problem != nil {
		row.Failure = e.Action.Problem.Cause
	}
	return row
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
// hostname requires something.
func (g *Gateway) writeEntries(out *terminal.Columns) {
	rows := tableRows(g.result.Table)
	protected := g.requiresAccess()
	if protected {
		fmt.Fprintln(out, "  #\tHOSTNAME\tMATCH\tACTION\tACCESS\tFROM"+rowMark)
	} else {
		fmt.Fprintln(out, "  #\tHOSTNAME\tMATCH\tACTION\tFROM"+rowMark)
	}
	for i := range rows {
		row := &rows[i]
		terminal.Printf(out, "  %d\t%s\t%s\t%s\t", i, orStar(row.Hostname), row.matchWithScheme(), row.Action)
		if protected {
			terminal.Printf(out, "%s\t", g.accessText(row.Hostname))
		}
		terminal.Printf(out, "%s"+terminal.MarkRow(row.Failure != "")+"\n", row.source())
	}
	flush(out)
}

// source describes where a row comes from, and why it returns an error.
func (r *tableRow) source() string {
	switch {
	case r.isClosed:
		return "closed hostname"
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
