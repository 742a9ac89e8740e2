package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// changesPage shows what manifests change in a cluster, and what the controller would change
// at Cloudflare.
type changesPage struct {
	// HasManifests reports whether manifests are shown on top of a cluster.
	HasManifests bool
	Gateways     []gatewayChanges
	// Unchanged are the Gateways without a difference.
	Unchanged []string
	Objects   []plan.ObjectChange
	Unknown   []string
	// CanCompare reports whether there is an API token for Cloudflare.
	CanCompare bool
	// Comparison is nil unless the visitor has asked for it, and IsOld reports whether it is
	// about an earlier state.
	Comparison *comparison
	IsOld      bool
	Compared   []comparedGateway
	// Read is the link that reads from Cloudflare.
	Read string
	// Hidden counts the rows and lines that are not shown, and All is the link to all.
	Hidden int
	All    string

	limit int
}

// gatewayChanges are a Gateway's changes that the page shows.
type gatewayChanges struct {
	plan.GatewayChanges
	Rows  []hostnameChange
	Diffs []diffView
}

// comparedGateway is the difference between a tunnel and its Gateway.
type comparedGateway struct {
	Name  string
	Notes []string
	Diffs []diffView
	// Equal reports whether the tunnel has the configuration already.
	Equal bool
}

// diffView is a unified diff.
type diffView struct {
	Title          string
	Lines          []plan.DiffLine
	Added, Removed int
}

const (
	// changesLimit is how many rows a table and how many lines a diff has on a page.
	changesLimit = 200
	// maxChangesLimit limits a page's size: more lines are a matter for plan --diff.
	maxChangesLimit = 100_000
)

// changes shows the changes. The parameter limit is how many rows and lines there are, and
// read the number of a comparison with Cloudflare.
func changes(v *visit) (any, error) {
	query := v.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < changesLimit {
		limit = changesLimit
	}
	page := &changesPage{HasManifests: v.Before != nil, CanCompare: v.Compare != nil, Unknown: v.Plan.Unknown, limit: min(limit, maxChangesLimit)}
	if page.HasManifests {
		changes, err := v.changes()
		if err != nil {
			return nil, err
		}
		page.add(changes)
	}
	number, _ := strconv.ParseInt(query.Get("read"), 10, 64)
	if page.CanCompare {
		if err := page.compare(v, number); err != nil {
			return nil, err
		}
	}
	if page.Hidden > 0 {
		query.Set("limit", strconv.Itoa(min(page.limit+page.Hidden, maxChangesLimit)))
		page.All = "/changes?" + query.Encode()
	}
	return page, nil
}

// add adds the changes that the manifests make.
func (p *changesPage) add(c *plan.Changes) {
	for i := range c.Gateways {
		g := gatewayChanges{GatewayChanges: c.Gateways[i]}
		if g.Change == "" {
			p.Unchanged = append(p.Unchanged, g.Namespace+"/"+g.Name)
			continue
		}
		for _, h := range limitTo(p, g.Hostnames) {
			g.Rows = append(g.Rows, hostnameChange{h})
		}
		g.Diffs = p.diffs(g.Routes, "Entries of the routing table", g.Configuration, "Tunnel configuration")
		p.Gateways = append(p.Gateways, g)
	}
	p.Objects = limitTo(p, c.Objects)
}

// diffs returns the diffs that are not empty. Each is followed by its title.
func (p *changesPage) diffs(texts ...string) []diffView {
	var all []diffView
	for i := 0; i+1 < len(texts); i += 2 {
		lines := plan.DiffLines(texts[i])
		if len(lines) == 0 {
			continue
		}
		d := diffView{Title: texts[i+1], Lines: limitTo(p, lines)}
		for _, line := range lines {
			switch line.Kind {
			case plan.DiffAdded:
				d.Added++
			case plan.DiffRemoved:
				d.Removed++
			case plan.DiffHeader, plan.DiffHunk, plan.DiffUnchanged:
			}
		}
		all = append(all, d)
	}
	return all
}

// limitTo returns the elements that the page shows, and counts the others.
func limitTo[T any](p *changesPage, all []T) []T {
	shown := min(len(all), p.limit)
	p.Hidden += len(all) - shown
	return all[:shown]
}

// compare adds the comparison with Cloudflare if the visitor has asked for one.
func (p *changesPage) compare(v *visit, number int64) error {
	if number > 0 && v.Method == http.MethodGet {
		c, err := v.comparisons.get(v.Context(), number, v.Snapshot)
		if err != nil {
			return fmt.Errorf("read from Cloudflare: %w", err)
		}
		p.Comparison, p.IsOld = c, c.version != v.Version
		number = c.number
		p.addComparison(c.Plan)
	}
	p.Read = "/changes?read=" + strconv.FormatInt(max(number, 0)+1, 10)
	return nil
}

func (p *changesPage) addComparison(compared *plan.Plan) {
	if compared == nil {
		return
	}
	for i := range compared.Gateways {
		g := &compared.Gateways[i]
		if g.Diff == nil {
			continue // the problem names it
		}
		p.Compared = append(p.Compared, comparedGateway{
			Name: g.Namespace + "/" + g.Name, Notes: g.Diff.Notes, Diffs: p.diffs(g.Diff.Unified, "Difference to the tunnel"), Equal: g.Diff.IsEqual(),
		})
	}
}

// hostnameChange is a row in the hostname table.
type hostnameChange struct{ plan.HostnameChange }

// sides are a cell's texts before and after a change.
type sides struct{ Before, After string }

// Same reports whether the cell does not change.
func (s sides) Same() bool { return s.Before == s.After }

// Cells returns the owner, the state and Access.
func (h hostnameChange) Cells() []sides {
	before, after := cellsOf(h.Before), cellsOf(h.After)
	all := make([]sides, len(before))
	for i := range all {
		all[i] = sides{before[i], after[i]}
	}
	return all
}

// cellsOf returns one side's texts. The side can be nil.
func cellsOf(s *plan.HostnameSummary) [3]string {
	if s == nil {
		return [3]string{}
	}
	owners := make([]string, len(s.Owners))
	for i, owner := range s.Owners {
		owners[i] = owner.String()
	}
	return [3]string{strings.Join(owners, ", "), strings.Join(s.States, ", "), s.Access}
}
