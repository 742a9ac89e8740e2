package xds

// compose sets the target. For example, if an Envoy rejects the routes "open" in
// version v2, the target has "open" in the version that an Envoy last acknowledged,
// with the clusters it needs. If an Envoy rejects clusters, all RouteConfigurations and
// scopes revert. The target omits a RouteConfiguration that no Envoy has acknowledged. A
// scope for it keeps the RouteConfiguration that it selected before.
func (g *gateway) compose() {
	if len(g.rejected.versions[routes])+len(g.rejected.versions[scopes]) == 0 && g.rejected.clusters == nil {
		g.target = g.published
		return
	}
	base := g.published
	if g.rejected.clusters != nil {
		base = g.acknowledgedClusters
	}
	g.target = nil
	if base == nil {
		return
	}
	g.editions++
	c := composition{gateway: g, target: &snapshot{edition: g.editions, isPartial: true, whole: &wholeRoutes{}}, routes: resources{}, scopes: resources{}, added: map[*snapshot]bool{}}
	for _, k := range []kind{listeners, secrets, limits} {
		c.target.byKind[k] = g.published.byKind[k]
	}
	c.target.byKind[clusters] = base.byKind[clusters]
	c.target.byKind[endpoints] = base.byKind[endpoints].withCommon(g.published.byKind[endpoints])
	for name, r := range g.published.byKind[routes].each() {
		if !c.addPublished(name, r) && !c.addAcknowledged(name) {
			c.target.lacksRoutes = true
		}
	}
	for name, r := range g.published.byKind[scopes].each() {
		if !c.addScope(name, r) {
			c.target.lacksRoutes = true
		}
	}
	c.target.byKind[routes], c.target.byKind[scopes] = newSet(c.routes), newSet(c.scopes)
	g.target = c.target
}

// composition is a target in the making.
type composition struct {
	*gateway
	target         *snapshot
	routes, scopes resources
	// added are the snapshots whose clusters were added.
	added map[*snapshot]bool
}

// addPublished adds a published RouteConfiguration unless it is rejected.
func (c *composition) addPublished(name string, r *resource) bool {
	if !c.isAccepted(routes, name, r) {
		return false
	}
	c.routes[name] = r
	return true
}

func (c *composition) isAccepted(k kind, name string, r *resource) bool {
	return c.rejected.clusters == nil && c.rejected.versions[k][name] != r.Version
}

// addAcknowledged adds a RouteConfiguration as an Envoy has acknowledged it.
func (c *composition) addAcknowledged(name string) bool {
	if c.routes[name] != nil {
		return true
	}
	last, from := c.acknowledged.find(routes, name)
	if last == nil {
		return false
	}
	c.routes[name] = last
	if c.added[from] {
		return true
	}
	c.added[from] = true
	for _, k := range []kind{clusters, endpoints} {
		c.target.byKind[k] = c.target.byKind[k].withMissing(from.byKind[k])
	}
	return true
}

// addScope adds a scope as it is published. If the scope is rejected or selects a withheld
// RouteConfiguration, it adds the scope that an Envoy has acknowledged, because that is in
// effect.
func (c *composition) addScope(name string, r *resource) bool {
	isAccepted, selected := c.isAccepted(scopes, name, r), selectedBy(r)
	if isAccepted && c.routes[selected] != nil && c.routes[selected] == c.published.byKind[routes].get(selected) {
		c.scopes[name] = r
		return true
	}
	if last, _ := c.acknowledged.find(scopes, name); last != nil && c.addAcknowledged(selectedBy(last)) {
		c.scopes[name] = last
		return true
	}
	if isAccepted && c.routes[selected] != nil {
		c.scopes[name] = r
		return true
	}
	return false
}
