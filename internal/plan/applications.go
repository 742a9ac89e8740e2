package plan

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Account is a Cloudflare account whose applications of Cloudflare Access a GatewayClass
// manages, as [Plan.ReadApplications] found it.
type Account struct {
	// ID is empty if it is not known.
	ID string `json:"id"`
	// Problem is why the applications could not be read; empty if they were.
	Problem string `json:"problem"`
	// Managed counts the applications of the installation, and Total those of the account.
	Managed int `json:"managed"`
	Total   int `json:"total"`
	// Changes are what the controller would change, without the changes of tags alone.
	Changes []ApplicationChange `json:"changes"`
	// Orphans are the hostnames of applications that nothing demands and whose Gateway has
	// no Tunnel object.
	Orphans []string `json:"orphans"`
}

// ApplicationChange is a change to one application.
type ApplicationChange struct {
	// Operation is create, update, revoke or delete.
	Operation string `json:"operation"`
	Hostname  string `json:"hostname"`
	// Gateway is the namespace/name of the Gateway for which the change is made.
	Gateway string `json:"gateway"`
}

// OpenApplications returns the Access interface for an account. token is the Secret with the
// API token for Access, or nil for the account's token.
type OpenApplications func(ctx context.Context, account credentials.Source, token *credentials.Source) (provider.Access, error)

// ReadApplications are applications that [Plan.ReadApplications] has read. [Options] with
// them makes [Build] decide with what they are.
type ReadApplications struct {
	known    map[types.NamespacedName]access.Known
	accounts []Account
}

// accessGateway is a Gateway as far as applications are concerned.
type accessGateway struct {
	access.Gateway
	// class is nil for a Gateway that is gone.
	class    *gatewayv1.GatewayClass
	settings settings.Applications
	source   credentials.Source // of the account
	account  string
}

// newAccessGateways returns the Gateways with all facts on which applications depend, except
// the rules in effect. It returns nil if no GatewayClass manages applications.
func (p *Plan) newAccessGateways() []accessGateway {
	if !slices.ContainsFunc(p.Gateways, func(g Gateway) bool { return g.result.Applications.AreManaged() }) {
		return nil
	}
	var all []accessGateway
	planned := map[types.NamespacedName]bool{}
	for i := range p.Gateways {
		g := p.newAccessGateway(&p.Gateways[i])
		planned[g.NamespacedName] = true
		all = append(all, g)
	}
	for i := range p.tunnels.objects {
		t := &p.tunnels.objects[i]
		if departed := p.departedGateway(t); !planned[departed.NamespacedName] {
			all = append(all, accessGateway{
				Gateway: access.Gateway{NamespacedName: departed.NamespacedName, State: departed.State, HasTunnel: true}, account: t.Spec.AccountID,
			})
		}
	}
	return all
}

func (p *Plan) newAccessGateway(g *Gateway) accessGateway {
	a := accessGateway{Gateway: g.decision.Access(g.facts.Object), class: g.class, settings: g.result.Applications}
	if a.Created = g.created; a.Created.IsZero() {
		a.Created = p.tunnels.now
	}
	if g.class != nil {
		a.Class = g.class.Name
	}
	if g.facts.Object != nil {
		a.account, a.source = g.facts.Object.Spec.AccountID, p.tunnels.credentialSource(g.facts.Object.Spec)
	}
	return a
}

// ReadApplications reads the applications of each account with managed ones, and the
// configurations of the tunnels whose Gateways demand some. It returns nil if there are none.
// It only reads from Cloudflare. objects contain the Secret with the name, whose key signs
// the tags of the controller's applications.
func (p *Plan) ReadApplications(
	ctx context.Context, openTunnels OpenAccount, open OpenApplications, objects client.Reader, signingKeySecret string,
) *ReadApplications {
	if len(p.applications) == 0 {
		return nil
	}
	read := &ReadApplications{known: map[types.NamespacedName]access.Known{}}
	identity, problem := p.identity(ctx, objects, signingKeySecret, "applications")
	rules := p.rulesInEffect(ctx, openTunnels)
	for _, g := range p.managingGateways() {
		facts := p.accountFacts(g.account, identity, rules)
		account := Account{ID: g.account, Problem: problem, Changes: []ApplicationChange{}, Orphans: []string{}}
		if account.ID == unknownAccount {
			account.ID = ""
		}
		if problem == "" {
			facts, account.Problem = p.readAccount(ctx, facts, g, open)
		}
		if account.Problem == "" {
			read.add(p, &account, facts, rules)
		}
		read.accounts = append(read.accounts, account)
	}
	return read
}

// managingGateways returns one Gateway of each account with managed applications, sorted by
// account: a Gateway of the oldest GatewayClass, whose settings count.
func (p *Plan) managingGateways() []*accessGateway {
	byAccount := map[string]*accessGateway{}
	for i := range p.applications {
		g := &p.applications[i]
		if g.class == nil || !g.settings.AreManaged() {
			continue
		}
		if first := byAccount[g.account]; first == nil || cmp.Or(
			g.class.CreationTimestamp.Compare(first.class.CreationTimestamp.Time), cmp.Compare(g.class.Name, first.class.Name)) < 0 {
			byAccount[g.account] = g
		}
	}
	var all []*accessGateway
	for _, g := range byAccount {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *accessGateway) int { return cmp.Compare(a.account, b.account) })
	return all
}

// rulesInEffect reads the configurations of the tunnels whose Gateways demand applications.
// A Gateway whose configuration cannot be read is missing.
func (p *Plan) rulesInEffect(ctx context.Context, open OpenAccount) map[types.NamespacedName]provider.Configuration {
	rules := map[types.NamespacedName]provider.Configuration{}
	for i := range p.Gateways {
		g := &p.Gateways[i]
		if g.facts.Object == nil || !g.result.Applications.AreManaged() {
			continue
		}
		inspected := &inspection{decision: g.decision, facts: resumed(g.facts), notes: []string{}, open: func(ctx context.Context) (provider.Provider, error) {
			return open(ctx, p.tunnels.credentialSource(g.facts.Object.Spec))
		}}
		if remote, err := inspected.readRemote(ctx); err == nil {
			rules[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}] = remote.configuration
		}
	}
	return rules
}

// accountFacts returns the facts about an account before it is read.
func (p *Plan) accountFacts(account string, identity ownership.Identity, rules map[types.NamespacedName]provider.Configuration) access.Facts {
	f := access.Facts{Uptime: uptime, Clock: p.tunnels.now, Identity: identity, GatewaysKnown: true, TokenVersion: "plan"}
	for i := range p.applications {
		a := &p.applications[i]
		if a.account != account {
			continue
		}
		g := a.Gateway
		if configuration, ok := rules[g.NamespacedName]; ok {
			g.InEffect, g.InEffectKnown = tagsOf(configuration), true
		}
		f.Gateways = append(f.Gateways, g)
		if a.class != nil && !slices.ContainsFunc(f.Classes, func(c access.Class) bool { return c.Name == a.class.Name }) {
			f.Classes = append(f.Classes, access.Class{Name: a.class.Name, Created: a.class.CreationTimestamp.Time, Settings: a.settings})
		}
	}
	return f
}

// tagsOf returns the AUD tags that the configuration demands, sorted.
func tagsOf(c provider.Configuration) []string {
	var tags []string
	for _, rule := range ingress.InEffect(c) {
		if rule != nil {
			tags = append(tags, rule.AUDTags...)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// readAccount opens the account and executes the steps that read its applications and
// policies. It returns the facts with the Memory after them, or why that is not possible.
func (p *Plan) readAccount(ctx context.Context, f access.Facts, g *accessGateway, open OpenApplications) (access.Facts, string) {
	var own *credentials.Source
	if source, separate := g.source.ForAccess(g.settings, p.tunnels.namespace); separate {
		own = &source
	}
	api, err := open(ctx, g.source, own)
	if err == nil {
		f, err = readApplications(ctx, api, f)
	}
	switch {
	case err == nil:
		return f, ""
	case errors.Is(err, provider.ErrForbidden) || errors.Is(err, provider.ErrUnauthorized):
		return f, err.Error() + "; the API token requires the permission Access: Apps and Policies Read"
	}
	return f, err.Error()
}

// readApplications ends before the first step that would wait or change anything. It waits
// for the request budget.
func readApplications(ctx context.Context, api provider.Access, f access.Facts) (access.Facts, error) {
	ctx = provider.WithReservation(provider.WithPriority(ctx, provider.PriorityAccess), reservedReads)
	for range maxSteps {
		f.Memory = access.Observe(f)
		step, r := access.Decide(f), access.Result{Sent: uptime, Uptime: uptime}
		switch step.Action {
		case access.ReadApplications:
			r.Applications, r.Err = api.Applications(ctx)
		case access.ReadPolicies:
			r.Policies, r.Err = api.Policies(ctx)
		case access.None, access.Wait, access.Apply, access.ConcludeAdoptions:
			return f, nil
		}
		if limit, ok := errors.AsType[*provider.RateLimitedError](r.Err); ok && limit.Budget {
			if err := pause(ctx, limit.RetryAfter); err != nil {
				return f, err
			}
			continue
		}
		if r.Err != nil {
			return f, r.Err
		}
		f.Memory = access.Conclude(f.Memory, step, r)
	}
	return f, errors.New("reading the applications did not end")
}

// add adds what the account's applications mean.
func (r *ReadApplications) add(p *Plan, account *Account, f access.Facts, rules map[types.NamespacedName]provider.Configuration) {
	report := access.NewReport(f)
	account.Managed, account.Total = report.Managed, report.Total
	for _, orphan := range report.Orphans {
		account.Orphans = append(account.Orphans, orphan.Hostname)
	}
	for _, w := range access.Plan(f) {
		if w.Operation != access.EnsureTag && (!p.selected || p.gateway(w.Gateway) != nil) {
			account.Changes = append(account.Changes, ApplicationChange{string(w.Operation), w.Hostname, w.Gateway.String()})
		}
	}
	slices.SortStableFunc(account.Changes, func(a, b ApplicationChange) int { return cmp.Compare(a.Hostname, b.Hostname) })
	for i := range f.Gateways {
		name := f.Gateways[i].NamespacedName
		known := access.Known{
			Uptime: uptime, Read: report.Read, Verdicts: report.Gateways[name], Tagged: report.Tagged, Allows: report.Allows,
		}
		if configuration, ok := rules[name]; ok {
			known.InEffect, known.InEffectKnown = ingress.InEffect(configuration), true
		}
		if g := p.gateway(name); g != nil && g.facts.Object != nil {
			known.Frozen = g.facts.Object.Status.Phase == v1alpha1.TunnelBlocked
		}
		r.known[name] = known
	}
}

// of returns what is known about the Gateway's applications, and whether they were read.
func (r *ReadApplications) of(name types.NamespacedName) (access.Known, bool) {
	if r == nil {
		return access.Known{}, false
	}
	known, ok := r.known[name]
	return known, ok
}

// changesApplications reports whether the controller would change applications.
func (a *Account) changesApplications() bool { return len(a.Changes) > 0 }
