package xds

import (
	"strings"
	"unicode"
)

// rejections are the last publication's resources that Envoys rejected.
type rejections struct {
	// versions maps rejected RouteConfigurations and scopes to their versions, by type.
	versions [kinds]map[string]string
	// clusters maps the clusters in the last rejected response to their versions. At
	// least one is not valid.
	clusters map[string]string
	// problem is the last error, and edition identifies its publication.
	problem string
	edition uint64
	// leaked are clusters that Envoys may have, although they do not list them.
	leaked map[string]struct{}
}

// maxLeaked limits how many clusters from rejected responses are remembered.
const maxLeaked = 100_000

// forgetRejections forgets rejected resources that are no longer published.
func (g *gateway) forgetRejections() {
	for k, versions := range g.rejected.versions {
		for name, version := range versions {
			if g.published.byKind[k].get(name).GetVersion() != version {
				delete(versions, name)
			}
		}
	}
	if !g.published.byKind[clusters].contains(g.rejected.clusters) {
		g.rejected.clusters = nil
	}
}

// acceptAll forgets the rejections of resources in the snapshot, which an Envoy accepts.
func (g *gateway) acceptAll(s *snapshot) {
	changed := false
	for k, versions := range g.rejected.versions {
		for name, version := range versions {
			if s.byKind[k].get(name).GetVersion() == version {
				delete(versions, name)
				changed = true
			}
		}
	}
	if changed {
		g.compose()
	}
}

// forgetRejection forgets the last error when every connected Envoy has the
// publication: the Envoy that rejected it is gone, or accepted it in the end.
func (g *gateway) forgetRejection() {
	if g.isComplete() {
		g.rejected.problem = ""
	}
}

// reject records that an Envoy has rejected a response.
func (g *gateway) reject(k kind, r *response, problem string) {
	if g.published == nil {
		return
	}
	versions := map[string]string{}
	for _, added := range r.added {
		versions[added.Name] = added.Version
	}
	if k == clusters {
		g.rememberLeaked(r)
	}
	if !g.published.isPublished(k, versions) {
		return // no longer published
	}
	g.rejected.problem, g.rejected.edition = problem, g.published.edition
	switch k {
	case clusters:
		g.rejectClusters(versions)
	case routes, scopes:
		g.withhold(k, versions)
	default: // the last endpoints, listeners, secrets and limits stay in effect
	}
}

// rejectClusters withholds the clusters, unless an Envoy has acknowledged them.
func (g *gateway) rejectClusters(versions map[string]string) {
	if last := g.acknowledgedClusters; last == nil || !last.byKind[clusters].contains(versions) {
		g.rejected.clusters = versions
		g.compose()
	}
}

// withhold withholds routes or scopes, unless an Envoy has acknowledged them.
func (g *gateway) withhold(k kind, versions map[string]string) {
	changed := false
	for name, version := range versions {
		last, _ := g.acknowledged.find(k, name)
		if g.published.byKind[k].has(name) && last.GetVersion() != version {
			g.rejected.versions[k][name], changed = version, true
		}
	}
	if changed {
		g.compose()
	}
}

// rememberLeaked remembers clusters that Envoy may have applied from a rejected
// response, for its next stream.
func (g *gateway) rememberLeaked(r *response) {
	for _, added := range r.added {
		if _, ok := r.previous[added.Name]; !ok && len(g.rejected.leaked) < maxLeaked {
			g.rejected.leaked[added.Name] = struct{}{}
		}
	}
}

const maxProblem = 200

// problemText shortens an error that Envoy reports, and removes control characters.
func problemText(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > maxProblem {
		text = string(runes[:maxProblem])
	}
	if text = strings.TrimSpace(text); text == "" {
		return "Envoy gave no reason"
	}
	return text
}
