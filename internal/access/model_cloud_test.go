package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelCloud is the Cloudflare account.
type modelCloud struct {
	// applications are in the order of their creation. Nothing changes what a slice has.
	applications []modelApplication
	tags         []string
	policies     [len(modelPolicies)]bool // which exist
	created      int
	quota        int // 0 is no limit
}

// modelApplication is an application with the tokens that visitors have.
type modelApplication struct {
	provider.Application
	// issued are the conditions under which tokens were issued that are not revoked. What
	// another client changes and changes back does not count: no controller can know it.
	issued []modelGrant
	// late is when a write of a former process was applied that no process has noticed; 0
	// if there was none.
	late time.Duration
}

// modelGrant is under which conditions an application issues tokens.
type modelGrant struct {
	policies uint8
	session  time.Duration
	// all reports whether it lets everyone pass without a token or with another policy.
	all bool
}

// grantOf returns how the application issues tokens.
func grantOf(a provider.Application) modelGrant {
	g := modelGrant{session: a.SessionDuration, all: a.Bypass || a.OtherPolicies > 0}
	for _, id := range a.Policies {
		g.policies |= 1 << policyIndex(id)
	}
	return g
}

// grantFor returns how an application for the demand issues tokens, and whether it can
// exist.
func (in *modelInstall) grantFor(d Demand, class int) (modelGrant, bool) {
	ids, ok := in.policyIDs(d, class)
	g := modelGrant{session: d.SessionDuration}
	for _, id := range ids {
		g.policies |= 1 << policyIndex(id)
	}
	return g, ok
}

// policyIDs returns the IDs of the demand's policies in the catalogue, and whether the
// application can have them.
func (in *modelInstall) policyIDs(d Demand, class int) (ids []provider.AccessPolicyID, ok bool) {
	catalogue, ok := in.settings(class).Catalogue, true
	for _, name := range d.Policies {
		id := provider.AccessPolicyID(catalogue[name])
		if id == "" || modelPolicies[policyIndex(id)].decision == "bypass" {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, ok
}

// within reports whether every visitor with a token under the conditions gets one under the
// other conditions too: a change only adds allow or service policies, or makes the session longer.
func (g modelGrant) within(other modelGrant) bool {
	added := other.policies &^ g.policies
	return g.all == other.all && g.policies&^other.policies == 0 && added&(1<<modelDenied) == 0 && g.session <= other.session
}

var (
	errModelTag    = errors.New("the tag does not exist")
	errModelFailed = &provider.UnavailableError{Err: errors.New("timeout")}
)

const (
	tagRevoke    = "tgrevoke"
	tagContested = "tgcontested"
)

// find returns the index of the application with the ID, or -1.
func (c *modelCloud) find(id provider.ApplicationID) int {
	return slices.IndexFunc(c.applications, func(a modelApplication) bool { return a.ID == id })
}

// exact returns the index of the first application for the domain, or -1.
func (c *modelCloud) exact(domain string) int {
	return slices.IndexFunc(c.applications, func(a modelApplication) bool { return slices.Contains(a.Domains, domain) })
}

// byTag returns the index of the application with the AUD tag, or -1.
func (c *modelCloud) byTag(tag string) int {
	return slices.IndexFunc(c.applications, func(a modelApplication) bool { return a.AUDTag == tag })
}

// issued returns under which conditions the application has issued tokens.
func (c *modelCloud) issued(i int) []modelGrant {
	if i < 0 {
		return nil
	}
	return c.applications[i].issued
}

// overwrite notes that a former process has written the application: what it issues does not
// count until a process has noticed.
func (c *modelCloud) overwrite(i int, issued []modelGrant, now time.Duration) {
	a := c.applications[i]
	a.issued, a.late = issued, now
	c.replace(i, a)
}

// notice notes that the applications were read.
func (c *modelCloud) notice() {
	for i, a := range c.applications {
		if a.late != 0 {
			a.late = 0
			a.issue(grantOf(a.Application))
			c.replace(i, a)
		}
	}
}

// at returns the application with that index; none for -1.
func (c *modelCloud) at(i int) provider.Application {
	if i < 0 {
		return provider.Application{}
	}
	return c.applications[i].Application
}

// check returns why Cloudflare refuses the spec.
func (c *modelCloud) check(spec provider.ApplicationSpec, self provider.ApplicationID) error {
	if i := c.exact(spec.Hostname); i >= 0 && c.applications[i].ID != self {
		return provider.ErrApplicationExists
	}
	for _, id := range spec.Policies {
		if !c.policies[policyIndex(id)] {
			return provider.ErrPolicyNotFound
		}
	}
	for _, tag := range spec.Tags {
		if !slices.Contains(c.tags, tag) {
			return errModelTag
		}
	}
	return nil
}

// create creates an application.
func (c *modelCloud) create(spec provider.ApplicationSpec) (provider.Application, error) {
	if err := c.check(spec, ""); err != nil {
		return provider.Application{}, err
	}
	if c.quota > 0 && len(c.applications) >= c.quota {
		return provider.Application{}, provider.ErrQuotaExceeded
	}
	return c.add(applied(provider.Application{Type: "self_hosted"}, spec)), nil
}

// add adds an application with a new ID and AUD tag.
func (c *modelCloud) add(a provider.Application) provider.Application {
	a.ID, a.AUDTag = provider.ApplicationID(fmt.Sprintf("app-%03d", c.created)), fmt.Sprintf("aud-%03d", c.created)
	c.created++
	c.applications = append(slices.Clone(c.applications), modelApplication{Application: a, issued: []modelGrant{grantOf(a)}})
	return a
}

// applied returns the application after the spec was written.
func applied(a provider.Application, spec provider.ApplicationSpec) provider.Application {
	a.Name, a.Domains, a.Policies, a.OtherPolicies, a.Bypass = spec.Name, []string{spec.Hostname}, slices.Clone(spec.Policies), 0, spec.Bypass
	a.SessionDuration, a.CORS, a.BindingCookie, a.Tags = spec.SessionDuration, spec.CORS, spec.BindingCookie, slices.Clone(spec.Tags)
	return a
}

// update replaces an application's fields. Its tokens remain valid.
func (c *modelCloud) update(last provider.Application, spec provider.ApplicationSpec) (provider.Application, error) {
	i := c.find(last.ID)
	if i < 0 {
		return provider.Application{}, provider.ErrNotFound
	}
	if err := c.check(spec, last.ID); err != nil {
		return provider.Application{}, err
	}
	before := c.applications[i]
	after := modelApplication{Application: applied(before.Application, spec), issued: before.issued}
	after.issue(grantOf(after.Application))
	c.replace(i, after)
	return after.Application, nil
}

func (a *modelApplication) issue(g modelGrant) {
	if !slices.Contains(a.issued, g) {
		a.issued = append(slices.Clone(a.issued), g)
		slices.SortFunc(a.issued, func(x, y modelGrant) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	}
}

func (c *modelCloud) replace(i int, a modelApplication) {
	c.applications = slices.Clone(c.applications)
	c.applications[i] = a
}

// edit makes another client change an application. Earlier tokens no longer
// count if the application no longer says that they are to be revoked.
func (c *modelCloud) edit(i int, change func(a *provider.Application)) {
	a := c.applications[i]
	marked := slices.Contains(a.Tags, tagRevoke)
	a.Domains, a.Tags, a.Policies = slices.Clone(a.Domains), slices.Clone(a.Tags), slices.Clone(a.Policies)
	change(&a.Application)
	if marked && !slices.Contains(a.Tags, tagRevoke) {
		a.issued = []modelGrant{grantOf(a.Application)}
	}
	c.replace(i, a)
}

func (c *modelCloud) remove(id provider.ApplicationID) {
	c.applications = slices.DeleteFunc(slices.Clone(c.applications), func(a modelApplication) bool { return a.ID == id })
}

// knowsOf notes that a controller knows under which conditions the application issued tokens.
func (c *modelCloud) knowsOf(last provider.Application) {
	if i := c.find(last.ID); i >= 0 {
		a := c.applications[i]
		a.issue(grantOf(last))
		c.replace(i, a)
	}
}

// revoke revokes the application's tokens.
func (c *modelCloud) revoke(last provider.Application) error {
	i := c.find(last.ID)
	if i < 0 {
		return provider.ErrNotFound
	}
	a := c.applications[i]
	a.issued = []modelGrant{grantOf(last)}
	c.replace(i, a)
	return nil
}

func (c *modelCloud) ensure(tag string) {
	if !slices.Contains(c.tags, tag) {
		c.tags = append(slices.Clone(c.tags), tag)
		slices.Sort(c.tags)
	}
}

// list returns all applications.
func (c *modelCloud) list() []provider.Application {
	list := make([]provider.Application, 0, len(c.applications))
	for _, a := range c.applications {
		list = append(list, a.Application)
	}
	return list
}

// existing returns the reusable policies.
func (c *modelCloud) existing() []provider.AccessPolicy {
	var list []provider.AccessPolicy
	for n, p := range modelPolicies {
		if c.policies[n] {
			list = append(list, provider.AccessPolicy{ID: p.id, Name: string(p.name), Decision: p.decision})
		}
	}
	return list
}

// overlaps reports whether the domain of an application concerns the hostname: it covers
// the hostname or a part of it.
func overlaps(domain, hostname string) bool {
	host, _, _ := strings.Cut(domain, "/")
	if host == hostname {
		return true
	}
	suffix, wildcard := strings.CutPrefix(host, "*")
	label, covered := strings.CutSuffix(hostname, suffix)
	return wildcard && covered && !strings.Contains(label, ".")
}
