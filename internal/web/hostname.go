package web

import (
	"net/http"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// hostnameContent is what templates/hostname.html shows: a hostname, or without a Row, which
// hostnames the visitor could mean.
type hostnameContent struct {
	Gateway, Hostname string
	Row               *plan.HostnameRow
	// Access is nil if the hostname is simply open.
	Access *plan.HostnameAccess
	// Entries are the first entries, as far as Part says.
	Entries []plan.HostnameEntry
	Part    part
	// Shadowed counts the shadowed ones among all entries.
	Shadowed int
	// Elsewhere are other Gateways' rows for the hostname.
	Elsewhere []*plan.HostnameRow
	// Wider are the rows whose wildcard covers the hostname, and Similar are those with a
	// similar name.
	Wider, Similar []*plan.HostnameRow
}

// similarLimit is how many similar hostnames a page suggests.
const similarLimit = 5

// hostname shows a Gateway's hostname with its entries.
func hostname(v *visit) (any, error) {
	query, all := v.URL.Query(), v.Hostnames()
	c := hostnameContent{Gateway: query.Get("gateway"), Hostname: hostnameIn(query.Get("name"))}
	for _, row := range all.On(c.Hostname) {
		if row.Gateway != c.Gateway {
			c.Elsewhere = append(c.Elsewhere, row)
		}
	}
	if c.Row = all.Find(c.Gateway, c.Hostname); c.Row == nil {
		c.suggest(all)
		return c, nil
	}
	c.Access = c.Row.Requirement()
	c.Entries = c.Row.Entries()
	for i := range c.Entries {
		if len(c.Entries[i].ShadowedBy) > 0 {
			c.Shadowed++
		}
	}
	c.Part = v.part(len(c.Entries))
	c.Entries = c.Entries[:c.Part.Shown]
	return c, nil
}

// suggest adds the hostnames that the visitor could mean.
func (c *hostnameContent) suggest(all *plan.Hostnames) {
	if len(c.Elsewhere) > 0 {
		return
	}
	for wide := range routing.WiderHostnames(c.Hostname) {
		c.Wider = append(c.Wider, all.On(wide)...)
	}
	c.Similar = all.Similar(c.Hostname, similarLimit)
}

// status returns the page's HTTP status.
func (c hostnameContent) status() int {
	if c.Row == nil {
		return http.StatusNotFound
	}
	return http.StatusOK
}
