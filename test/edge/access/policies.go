package access

import (
	"encoding/json"
	"slices"

	"github.com/google/uuid"
)

// Policy is a policy: one that several applications use, or one in a single application.
type Policy struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Decision is allow, deny, bypass or non_identity. The last is for service tokens.
	Decision string `json:"decision"`
	Reusable bool   `json:"reusable"`
	// Include, Exclude and Require are the rules, as the request had them. The login decides
	// what they mean.
	Include []json.RawMessage `json:"include"`
	Exclude []json.RawMessage `json:"exclude"`
	Require []json.RawMessage `json:"require"`
}

// BypassesEveryone reports whether the policy lets every request pass.
func (p Policy) BypassesEveryone() bool {
	return p.Decision == "bypass" && len(p.Include) == 1 && string(p.Include[0]) == `{"everyone":{}}` &&
		len(p.Exclude)+len(p.Require) == 0
}

// linkedPolicy is a policy in an application.
type linkedPolicy struct {
	Policy
	Precedence int `json:"precedence"`
}

var decisions = []string{"allow", "deny", "bypass", "non_identity"}

// policyLink is a policy of an application: the ID of a reusable policy, or a policy of the
// application alone.
type policyLink struct {
	reusable string
	own      Policy
}

func (l policyLink) resolve(a *account) Policy {
	if l.reusable == "" {
		return l.own
	}
	i := a.policyIndex(l.reusable)
	return a.policies[i] // DeletePolicy removes the links
}

// ordered is a link with its precedence.
type ordered struct {
	policyLink
	precedence int
}

func (o ordered) isReusable() bool { return o.reusable != "" }

func allOf[T any](items []T, is func(T) bool) bool {
	return !slices.ContainsFunc(items, func(item T) bool { return !is(item) })
}

// readPolicies reads the policies in a request. Each is the ID of a reusable policy, an
// object with that ID, or a policy for the application alone. The order of the list is the
// order of the policies unless they have a precedence.
func (a *account) readPolicies(policies []json.RawMessage) ([]policyLink, error) {
	var all []ordered
	for i, raw := range policies {
		next := ordered{precedence: i + 1}
		var link struct {
			linkedPolicy
		}
		var id string
		if json.Unmarshal(raw, &id) == nil {
			link.ID = id
		} else if err := json.Unmarshal(raw, &link); err != nil {
			return nil, invalid("policies: %s", err)
		}
		if link.Precedence != 0 {
			next.precedence = link.Precedence
		}
		if slices.ContainsFunc(all, func(o ordered) bool { return o.precedence == next.precedence }) {
			return nil, invalid("policy precedences must be unique")
		}
		var err error
		if next.policyLink, err = a.link(link.Policy); err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	if slices.ContainsFunc(all, ordered.isReusable) && !allOf(all, ordered.isReusable) {
		// The documentation states the rule, but not the error.
		return nil, invalid("reusable and inline policies are mutually exclusive")
	}
	slices.SortStableFunc(all, func(x, y ordered) int { return x.precedence - y.precedence })
	links := make([]policyLink, len(all))
	for i, o := range all {
		links[i] = o.policyLink
	}
	return links, nil
}

// link returns a link to a reusable policy, or a policy for one application.
func (a *account) link(p Policy) (policyLink, error) {
	switch {
	case a.policyIndex(p.ID) >= 0:
		return policyLink{reusable: p.ID}, nil
	case p.Decision == "":
		return policyLink{}, policyNotFound()
	case !slices.Contains(decisions, p.Decision) || len(p.Include) == 0:
		return policyLink{}, invalid("policy %q needs a decision and an include rule", p.Name)
	case p.ID == "":
		p.ID = uuid.NewString()
	}
	p.Reusable = false
	p.fill()
	return policyLink{own: p}, nil
}

// fill makes absent lists empty, as the API does.
func (p *Policy) fill() {
	for _, list := range []*[]json.RawMessage{&p.Include, &p.Exclude, &p.Require} {
		*list = append([]json.RawMessage{}, *list...)
	}
}

func (a *account) policyIndex(id string) int {
	return slices.IndexFunc(a.policies, func(p Policy) bool { return p.ID == id })
}

// Policies returns the account's reusable policies in the order in which they were created.
func (d *Database) Policies(account string) []Policy {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.account(account).policies)
}

// AddPolicy creates a reusable policy, and returns it. If it has no ID, it gets one; if it
// has no rules, it includes everyone. It panics if the decision is invalid.
func (d *Database) AddPolicy(account string, p Policy) Policy {
	if !slices.Contains(decisions, p.Decision) {
		panic("access: decision " + p.Decision + " is invalid")
	}
	if p.ID == "" {
		p.ID = uuid.NewString()
	}
	if len(p.Include) == 0 {
		p.Include = []json.RawMessage{json.RawMessage(`{"everyone":{}}`)}
	}
	p.Reusable = true
	p.fill()
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	a.policies = append(a.policies, p)
	return p
}

// SetDecision changes the decision of a reusable policy. It panics if the policy does not
// exist.
func (d *Database) SetDecision(account, id, decision string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	a.policies[a.policyIndex(id)].Decision = decision
}

// DeletePolicy deletes a reusable policy. The applications that use it lose it; whether
// Cloudflare refuses that instead is uncertain. It has no effect if the policy does not
// exist.
func (d *Database) DeletePolicy(account, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	a.policies = slices.DeleteFunc(a.policies, func(p Policy) bool { return p.ID == id })
	for _, stored := range a.applications {
		stored.policies = slices.DeleteFunc(stored.policies, func(l policyLink) bool { return l.reusable == id })
	}
}

// Tags returns the account's tags in the order in which they were created.
func (d *Database) Tags(account string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.account(account).tags)
}

// CreateTag creates a tag. The error is an [*Error].
func (d *Database) CreateTag(account, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	switch {
	case !tagName.MatchString(name):
		return invalid("a tag has 1 to 35 letters and digits")
	case slices.Contains(a.tags, name):
		return tagExists()
	}
	a.tags = append(a.tags, name)
	return nil
}

// DeleteTag deletes a tag, also from the applications that have it. It has no effect if the
// tag does not exist.
func (d *Database) DeleteTag(account, name string) {
	isTag := func(other string) bool { return other == name }
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	a.tags = slices.DeleteFunc(a.tags, isTag)
	for _, stored := range a.applications {
		stored.parsed.Tags = slices.DeleteFunc(stored.parsed.Tags, isTag)
	}
}
