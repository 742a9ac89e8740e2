package convert

import (
	"regexp"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The syntax in a TunnelConfiguration's access block.
var (
	teamSyntax = regexp.MustCompile(`^[0-9a-z]([0-9a-z-]{0,61}[0-9a-z])?$`)
	tagSyntax  = regexp.MustCompile(`^[0-9A-Za-z_-]{1,128}$`)
)

const maxTags = 16

// access returns the access block that a rule requires, or nil. If the API cannot express
// it, the rule loses its backend, so that no request is served without a token.
func (c *converter) access(r *Rule, d *destination) *Access {
	a := r.Access
	if a == nil {
		return nil
	}
	if !a.Required {
		c.note(NoteInfo, r, "originRequest.access", "cloudflared requires no token, because required is not true", "")
		return nil
	}
	if a.Environment != "" {
		c.note(NoteDifferent, r, "originRequest.access", "the controller has no equivalent for environment, so no token is valid", "keep the rule on the old tunnel")
		d.backend = nil
		return nil
	}
	valid := teamSyntax.MatchString(a.TeamName) && len(a.AUDTag) > 0 && len(a.AUDTag) <= maxTags &&
		!slices.ContainsFunc(a.AUDTag, func(tag string) bool { return !tagSyntax.MatchString(tag) })
	if !valid {
		c.note(NoteDifferent, r, "originRequest.access", "a TunnelConfiguration needs a valid teamName and 1 to 16 audTags, so the rule returns 500", "complete the block, and convert again")
		d.backend = nil
		return nil
	}
	return a
}

// block returns the access block in the API's form.
func (a *Access) block() *v1alpha1.Access {
	if a == nil {
		return &v1alpha1.Access{Required: false}
	}
	block := &v1alpha1.Access{Required: true, TeamName: ptr.To(a.TeamName)}
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(a.AUDTag))) {
		block.AUDTags = append(block.AUDTags, v1alpha1.AUDTag(tag))
	}
	return block
}

// groupAccess returns the one access block for a group's hostname. Rules that require
// another token lose their backend, and rules that require none require it now.
func (c *converter) groupAccess(g *group) *Access {
	var chosen *Access
	for _, e := range g.served() {
		if a := c.destinations[e.rule.Index].access; a != nil && chosen == nil {
			chosen = a
		}
	}
	if chosen == nil {
		return nil
	}
	for _, e := range g.served() {
		switch a := c.destinations[e.rule.Index].access; {
		case a == nil:
			c.note(NoteDifferent, e.rule, "", "requests for "+g.name()+" require the Access token of another rule, because access applies to a hostname", "give the rule its own hostname")
		case !a.block().Equal(chosen.block()):
			c.note(NoteDifferent, e.rule, "originRequest.access", "requests for "+g.name()+" get 500, because access applies to a hostname and another rule requires another token", "give the rule its own hostname")
			e.answer = answerClosed
		}
	}
	return chosen
}
