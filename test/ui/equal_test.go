package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// manifests are files whose plans have all kinds: entries, problems and limits.
var manifests = [][]string{
	{"config/samples"}, {"config/samples/envoy"}, {"config/samples/multi-tenancy"}, {"config/samples/access/managed"},
	{"internal/plan/testdata/envoy.yaml"}, {"internal/plan/testdata/schemes.yaml"}, {"internal/plan/testdata/why.yaml"}, {"test/ui/testdata/refused.yaml"},
}

func TestThePageEqualsThePlanOfManifests(t *testing.T) {
	t.Parallel()
	for _, files := range manifests {
		t.Run(strings.Join(files, " "), func(t *testing.T) {
			t.Parallel()
			var arguments []string
			for _, file := range files {
				arguments = append(arguments, "-f", file)
			}
			p := serve(t, nil, arguments...)
			b := newTab(t)
			b.open(p.link)
			c := comparison{t, b, p.site, readPlan(t, nil, arguments...), map[string]*v1alpha1.Tunnel{}}
			c.all()
		})
	}
}

// comparison compares a site's pages with a plan.
type comparison struct {
	t       *testing.T
	tab     *tab
	site    string
	plan    planned
	tunnels map[string]*v1alpha1.Tunnel // in the cluster, by Gateway
}

func (c *comparison) all() {
	c.t.Helper()
	if len(c.plan.Gateways) == 0 {
		c.t.Fatal("the plan has no Gateway")
	}
	c.overview()
	c.problems()
	c.hostnames()
	for i := range c.plan.Gateways {
		g := &c.plan.Gateways[i]
		c.namespaces(g)
		for _, hostname := range g.hostnames() {
			c.hostname(g, hostname)
		}
	}
}

func (c *comparison) open(path string, parameters ...string) {
	c.t.Helper()
	query := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
	}
	if status := c.tab.open(c.site + path + "?" + query.Encode()); status != http.StatusOK {
		c.t.Fatalf("%s %q returns %d", path, parameters, status)
	}
}

// equal reports a difference between the page and the plan.
func (c *comparison) equal(what string, got, want any) {
	c.t.Helper()
	if !reflect.DeepEqual(got, want) {
		c.t.Errorf("%s: the page shows\n%q\nbut the plan has\n%q", what, got, want)
	}
}

// overview compares the Gateways.
func (c *comparison) overview() {
	c.t.Helper()
	c.open("/", "limit", "1000")
	rows := c.tab.table("#gateways + table")
	if len(rows) != len(c.plan.Gateways) {
		c.t.Fatalf("the overview has the Gateways %v", rows)
	}
	for i := range c.plan.Gateways {
		g, row := &c.plan.Gateways[i], rows[i]
		c.equal("Gateway", row["Gateway"], g.id())
		c.equal(g.id()+" address", row["Address"], c.address(g))
		if dataPlane, _, _ := strings.Cut(row["Data plane"], " "); g.DataPlaneChange == nil && dataPlane != g.DataPlane {
			c.t.Errorf("Gateway %s has the data plane %q, not %q", g.id(), row["Data plane"], g.DataPlane)
		}
		phase, connectors := "none in the cluster", "not known"
		if object := c.tunnels[g.id()]; object != nil {
			phase, connectors = string(object.Status.Phase)+"\n"+object.Spec.Name, object.Status.Connectors.Summary
		}
		c.equal(g.id()+" tunnel", row["Tunnel"], phase)
		c.equal(g.id()+" connectors", row["Connectors"], connectors)
		c.equal(g.id()+" hostnames", lines(row["Hostnames"]), c.hostnameCounts(g))
	}
}

// address returns the Gateway's addresses in its status.
func (c *comparison) address(g *plannedGateway) string {
	for i := range c.plan.Statuses {
		s := &c.plan.Statuses[i]
		if s.Kind != "Gateway" || s.Namespace != g.Namespace || s.Name != g.Name {
			continue
		}
		var all []string
		for _, address := range s.Status.Addresses {
			all = append(all, address.Value)
		}
		if len(all) > 0 {
			return strings.Join(all, " ")
		}
	}
	return "none"
}

// hostnameCounts returns the overview's lines about the Gateway's hostnames.
func (c *comparison) hostnameCounts(g *plannedGateway) []string {
	counts := map[string]int{}
	for _, hostname := range g.hostnames() {
		state := ""
		for _, l := range g.listenersOf(hostname) {
			if state == "" || l.state() == "served" {
				state = l.state()
			}
		}
		counts[state]++
	}
	var states []string
	for state, n := range counts {
		states = append(states, fmt.Sprintf("%s: %d", state, n))
	}
	slices.SortFunc(states, func(a, b string) int {
		nameA, countA, _ := strings.Cut(a, ": ")
		nameB, countB, _ := strings.Cut(b, ": ")
		x, _ := strconv.Atoi(countA)
		y, _ := strconv.Atoi(countB)
		if x != y {
			return y - x
		}
		return strings.Compare(nameA, nameB)
	})
	noun := "hostnames"
	if len(g.hostnames()) == 1 {
		noun = "hostname"
	}
	return append(append([]string{fmt.Sprintf("%d %s", len(g.hostnames()), noun)}, states...), "Namespaces")
}

// problems compares the problems with the conditions in the plan, in both directions.
func (c *comparison) problems() {
	c.t.Helper()
	shown := map[string]bool{} // objects
	for _, p := range eval[[]struct {
		Reason, Condition, Message string
		Objects                    []string
	}](c.tab, `[...document.querySelectorAll("#problems + ul > li")].map((e) => ({
		Reason: e.querySelector(".problem").innerText, Condition: e.querySelector(".muted").innerText,
		Message: e.querySelector("p:nth-of-type(2)").innerText, Objects: [...e.querySelectorAll(".object")].map((o) => o.innerText) }))`) {
		for _, object := range p.Objects {
			shown[object] = true
			if !c.hasCondition(object, p.Condition, p.Reason, p.Message) {
				c.t.Errorf("the overview shows a problem of %s that the plan does not have: %+v", object, p)
			}
		}
	}
	for i := range c.plan.Statuses {
		s := &c.plan.Statuses[i]
		for _, condition := range s.conditions() {
			isExpected := map[string]bool{"Accepted": true, "Programmed": true, "ResolvedRefs": true}
			isUnread := condition.Reason == "Pending" // plan has not read the applications, which the page says once
			if isExpected[condition.Type] && condition.Status == "False" && !isUnread && !shown[s.String()] {
				c.t.Errorf("the overview does not show that %s has %s=False: %s", s, condition.Type, condition.Message)
			}
		}
	}
}

// hasCondition reports whether the object has the condition, or a listener with the problem.
func (c *comparison) hasCondition(object, condition, reason, message string) bool {
	listener, isListener := strings.CutPrefix(condition, "listener ")
	for i := range c.plan.Statuses {
		s := &c.plan.Statuses[i]
		if s.String() == object && slices.ContainsFunc(s.conditionsFor(listener, isListener), func(a plannedCondition) bool {
			return a.Reason == reason && a.Message == message && (isListener || a.Type == condition)
		}) {
			return true
		}
	}
	// A listener has no condition if its ListenerSet is not allowed.
	return isListener && slices.ContainsFunc(c.plan.Gateways, func(g plannedGateway) bool {
		return slices.ContainsFunc(g.Listeners, func(l plannedListener) bool {
			return l.Owner.String() == object && l.Name == listener && l.Reason == reason
		})
	})
}

// hostnames compares the table with all Gateways.
func (c *comparison) hostnames() {
	c.t.Helper()
	c.open("/hostnames", "limit", "1000")
	rows := map[string]map[string]string{}
	for _, row := range c.tab.table("#matches + table") {
		gateway := row["Gateway"]
		if len(c.plan.Gateways) == 1 {
			gateway = c.plan.Gateways[0].id()
		}
		name, _, _ := strings.Cut(row["Hostname"], "\n")
		rows[gateway+" "+name] = row
	}
	total := 0
	for i := range c.plan.Gateways {
		g := &c.plan.Gateways[i]
		for _, hostname := range g.hostnames() {
			total++
			id := g.id() + " " + orStar(hostname)
			row, ok := rows[id]
			if !ok {
				c.t.Errorf("the table does not have %s", id)
				continue
			}
			var owners, ports, states []string
			for _, l := range g.listenersOf(hostname) {
				owners, ports, states = append(owners, l.Owner.String()), append(ports, fmt.Sprintf("%d %s", l.Port, l.Protocol)), append(states, l.state())
			}
			c.equal(id+" owner", lines(row["Owner"]), limited(owners))
			c.equal(id+" port", lines(row["Port"]), shownOf(ports))
			c.equal(id+" state", lines(row["State"]), shownOf(states))
			c.equal(id+" Access", row["Access"], g.accessOf(hostname))
		}
	}
	if len(rows) != total {
		c.t.Errorf("the table has %d hostnames, but the plan has %d", len(rows), total)
	}
}

// shownOf returns the elements that a row shows.
func shownOf(all []string) []string { return all[:min(4, len(all))] }

func limited(all []string) []string {
	if len(all) > 4 {
		return append(slices.Clone(all[:4]), fmt.Sprintf("and %d more", len(all)-4))
	}
	return all
}

// hostname compares a hostname's page.
func (c *comparison) hostname(g *plannedGateway, hostname string) {
	c.t.Helper()
	id := g.id() + " " + orStar(hostname)
	c.open("/hostname", "gateway", g.id(), "name", orStar(hostname))
	var want []map[string]string
	for _, l := range g.listenersOf(hostname) {
		want = append(want, map[string]string{
			"Owner": l.Owner.String(), "Listener": l.Name, "Port": fmt.Sprintf("%d %s", l.Port, l.Protocol), "State": l.state(), "Attached routes": strconv.Itoa(l.AttachedRoutes),
		})
	}
	got := c.tab.table("#listeners ~ table:has(+ #access)")
	for _, row := range got {
		row["State"], _, _ = strings.Cut(row["State"], "\n")
	}
	c.equal(id+" listeners", got, want)
	if access := g.accessOf(hostname); access != "" {
		c.equal(id+" Access", c.tab.text("#access + p")[0], access)
	}
	c.entries(g, id, hostname)
}

// entries compares the entries on the open page.
func (c *comparison) entries(g *plannedGateway, id, hostname string) {
	c.t.Helper()
	rows := c.shownEntries()
	if slices.ContainsFunc(rows, func(r shownEntry) bool { return r.isClosed }) {
		if !strings.HasPrefix(g.accessOf(hostname), "closed") {
			c.t.Errorf("%s is closed on the page, but not in the plan", id)
		}
		return // the plan has only the status 403
	}
	var own, reachable, shadowed []string
	for _, row := range rows {
		switch isOwn := row.hostname == ""; {
		case row.shadowed && isOwn:
			shadowed = append(shadowed, row.text)
		case row.shadowed: // its own hostname has it
		case isOwn:
			own, reachable = append(own, row.text), append(reachable, row.text)
		default:
			reachable = append(reachable, row.text)
			if wider := c.texts(g, row.hostname); !slices.Contains(wider, row.text) {
				c.t.Errorf("%s shows an entry for %s that the plan does not have: %s in %q", id, row.hostname, row.text, wider)
			}
		}
	}
	if entries := c.texts(g, hostname); len(entries) == len(own) {
		c.equal(id+" entries", own, entries)
	} else { // a hostname with other Access settings than the wildcard repeats its entries
		c.equal(id+" entries", reachable, entries)
	}
	c.equal(id+" shadowed entries", shadowed, c.shadowedTexts(g, hostname))
}

// texts returns the plan's reachable entries for the hostname, as [shownEntry] has them.
func (c *comparison) texts(g *plannedGateway, hostname string) (all []string) {
	for i := range g.Entries {
		if e := &g.Entries[i]; orStar(e.Hostname) == orStar(hostname) {
			state := "reachable"
			if e.Failure != "" {
				state = e.Failure
			}
			all = append(all, e.shown()+" | "+state)
		}
	}
	return all
}

func (c *comparison) shadowedTexts(g *plannedGateway, hostname string) (all []string) {
	for i := range g.Shadowed {
		e := &g.Shadowed[i]
		if e.Hostname != hostname {
			continue
		}
		text := e.source() + " | " + e.match() + " | shadowed"
		for _, b := range e.Before {
			text += "; by " + b.source() + ": " + b.Reason
		}
		all = append(all, text)
	}
	return all
}

func (e *plannedEntry) match() string {
	if e.Scheme != "" {
		return e.Match + ", scheme " + e.Scheme
	}
	return e.Match
}

// shown describes the entry as the page does: its backends, and what changes.
func (e *plannedEntry) shown() string {
	total := 0
	for _, b := range e.Backends {
		total += b.Weight
	}
	var shown, described []string
	for _, b := range e.Backends {
		line, details := b.Backend, []string(nil)
		if len(e.Backends) > 1 {
			line += fmt.Sprintf(" weight %d (%d %%)", b.Weight, b.Weight*100/total)
			details = append(details, fmt.Sprintf("weight %d", b.Weight))
		}
		shown = append(shown, line)
		if b.TLS != "" {
			shown = append(shown, b.TLS)
		}
		shown = append(shown, b.Changes...)
		if details = append(details, b.Changes...); len(details) > 0 {
			described = append(described, fmt.Sprintf("%s (%s)", b.Backend, strings.Join(details, "; ")))
		} else {
			described = append(described, b.Backend)
		}
	}
	// What follows in the action is the same for all backends.
	rest := strings.TrimPrefix(strings.TrimPrefix(e.Action, strings.Join(described, ", ")), "; ")
	if rest != "" {
		shown = append(shown, strings.Split(rest, "; ")...)
	}
	if e.OriginRequest != nil {
		shown = append(shown, "originRequest "+string(e.OriginRequest))
	}
	return e.source() + " | " + e.match() + " | " + normal(strings.Join(shown, "; "))
}

// normal removes spaces, which differ between JSON on a page and in the plan.
func normal(text string) string { return strings.ReplaceAll(text, " ", "") }

// shownEntry is a row with an entry on a hostname's page.
type shownEntry struct {
	text               string
	hostname           string // for an entry with a wildcard
	shadowed, isClosed bool
}

func (c *comparison) shownEntries() (all []shownEntry) {
	c.t.Helper()
	for i, row := range c.tab.table("#entries ~ table") {
		match, hostname, _ := strings.Cut(row["Match"], "\nfor ")
		route, position, _ := strings.Cut(row["Route"], "\n")
		source := route + " " + strings.ReplaceAll(position, ",", "")
		e := shownEntry{hostname: hostname}
		state := lines(row["State"])
		if state[0] == "shadowed" {
			e.shadowed, e.text = true, source+" | "+match+" | "+strings.Join(state, "; ")
		} else {
			if reason, cause, ok := strings.Cut(row["State"], ": "); ok && !strings.Contains(reason, " ") {
				state = []string{cause}
			}
			e.isClosed = strings.HasPrefix(state[0], "not tried")
			e.text = source + " | " + match + " | " + normal(strings.Join(lines(row["What happens"]), "; ")) + " | " + state[0]
		}
		if row["#"] != strconv.Itoa(i+1) {
			c.t.Errorf("row %d has the number %s", i+1, row["#"])
		}
		all = append(all, e)
	}
	return all
}

// namespaces compares how much is used, and the Gateway's limits.
func (c *comparison) namespaces(g *plannedGateway) {
	c.t.Helper()
	c.open("/namespaces", "gateway", g.id(), "limit", "1000")
	tables := eval[int](c.tab, `document.querySelectorAll("#page table").length`)
	if tables == 0 && len(g.Limits)+len(g.Tenants) == 0 {
		return
	}
	var limits []map[string]string
	for _, l := range g.Limits {
		limits = append(limits, map[string]string{"Limit": l.Name, "Used": fmt.Sprintf("%d of %d", l.Used, l.Limit), "Used most by": l.Tenant + l.Hostname})
	}
	c.equal(g.id()+" limits", c.tab.table("#page table:nth-of-type(1)"), limits)
	if len(g.Tenants) == 0 {
		return
	}
	rows := map[string]map[string]string{}
	for _, row := range c.tab.table("#page table:nth-of-type(2)") {
		name, _, _ := strings.Cut(row["Namespace"], "\n")
		_, value, _ := strings.Cut("="+name, "=")
		rows[value[strings.LastIndex(value, "=")+1:]] = row
	}
	c.equal(g.id()+" number of tenants", len(rows), len(g.Tenants))
	for _, tenant := range g.Tenants {
		row := rows[tenant.Name]
		used := map[string]int{"listenersPerNamespace": tenant.Listeners, "rulesPerNamespace": tenant.Rules, "regularExpressionsPerNamespace": tenant.Instructions}
		for column, n := range used {
			if cell, ok := row[column]; ok {
				shown, _, _ := strings.Cut(cell, " ")
				c.equal(g.id()+" "+tenant.Name+" "+column, shown, strconv.Itoa(n))
			}
		}
		c.equal(g.id()+" "+tenant.Name+" refused routes", row["Refused routes"], strconv.Itoa(tenant.RefusedRoutes))
		c.equal(g.id()+" "+tenant.Name+" refused listeners", row["Refused listeners"], strconv.Itoa(tenant.RefusedListeners))
	}
}

// table returns the visible text in a table's cells, by column.
func (b *tab) table(selector string) []map[string]string {
	b.t.Helper()
	return eval[[]map[string]string](b, fmt.Sprintf(`(() => {
		const table = document.querySelector(%q);
		if (!table) return [];
		const names = [...table.tHead.rows[0].cells].map((c) => c.textContent.trim());
		return [...table.tBodies[0].rows].map((r) => Object.fromEntries([...r.cells].map((c, i) => [names[i], c.innerText.trim()])));
	})()`, selector))
}

// lines returns the lines that are not empty.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func orStar(hostname string) string {
	if hostname == "" {
		return "*"
	}
	return hostname
}
