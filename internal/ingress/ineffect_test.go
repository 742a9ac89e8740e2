package ingress_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Rules of an external change demand a token only if no request gets by without
// it.
func TestRulesInEffectDemandATokenTogether(t *testing.T) {
	staff := provider.OriginRequest{Access: &provider.AccessSettings{Required: true, TeamName: "example", AUDTag: []string{"staff"}}}
	ops := provider.OriginRequest{Access: &provider.AccessSettings{Required: true, TeamName: "example", AUDTag: []string{"ops"}}}
	optional := provider.OriginRequest{Access: &provider.AccessSettings{TeamName: "example", AUDTag: []string{"staff"}}}
	rule := func(path, service string, o provider.OriginRequest) provider.IngressRule {
		return provider.IngressRule{Hostname: "a.example.com", Path: path, Service: service, OriginRequest: o}
	}
	none := provider.OriginRequest{}
	for name, c := range map[string]struct {
		rules []provider.IngressRule
		want  *routing.Requirement
	}{
		"a token":                        {[]provider.IngressRule{rule("", cart, staff)}, accessTo("staff")},
		"a token for each backend":       {[]provider.IngressRule{rule("^/a$", cart, staff), rule("", "http_status:404", none)}, accessTo("staff")},
		"a token for a status":           {[]provider.IngressRule{rule("", "http_status:500", staff)}, accessTo("staff")},
		"no backend":                     {[]provider.IngressRule{rule("", "http_status:404", none)}, nil},
		"one backend without a token":    {[]provider.IngressRule{rule("^/a$", cart, staff), rule("", pages, none)}, nil},
		"a wider backend without one":    {[]provider.IngressRule{rule("^/a$", cart, staff)}, nil},
		"different tokens":               {[]provider.IngressRule{rule("^/a$", cart, staff), rule("", cart, ops)}, nil},
		"a token that is not required":   {[]provider.IngressRule{rule("", cart, optional)}, nil},
		"closed":                         {[]provider.IngressRule{rule("", "http_status:403", none)}, &routing.Requirement{Closed: true}},
		"closed for some paths":          {[]provider.IngressRule{rule("^/a$", "http_status:403", none), rule("", cart, staff)}, accessTo("staff")},
		"a backend before a closed rule": {[]provider.IngressRule{rule("^/a$", cart, staff), rule("", "http_status:403", none)}, accessTo("staff")},
	} {
		t.Run(name, func(t *testing.T) {
			rules := append(c.rules, provider.IngressRule{Service: pages})
			got := ingress.InEffect(provider.Configuration{Ingress: rules})["a.example.com"]
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the requirement differs (-want +got):\n%s", diff)
			}
		})
	}
}

// An open hostname is in the result, because it may have to be protected.
func TestRulesInEffectNameOpenHostnames(t *testing.T) {
	got := ingress.InEffect(provider.Configuration{Ingress: []provider.IngressRule{{Hostname: "a.example.com", Service: pages}, {Service: "http_status:404"}}})
	if diff := cmp.Diff(routing.Access{"a.example.com": nil, "": nil}, got); diff != "" {
		t.Errorf("the requirements differ (-want +got):\n%s", diff)
	}
}

// What is in effect with the rules for a table is what the table requires.
func TestRulesInEffectRequireWhatTheTableRequires(t *testing.T) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneIngressRules} {
		tokens, closed := 0, 0
		for seed := range uint64(2000) {
			table := randomTable(rand.New(rand.NewPCG(seed, 3))) //nolint:gosec // the test must be reproducible
			slices.SortFunc(table.Groups, func(a, b routing.Group) int { return routing.CompareGroups(a.Hostname, b.Hostname) })
			inEffect := ingress.InEffect(*ingress.Render(plane, table, nil).Configuration())
			for _, host := range table.Hosts() {
				if host.Access.IsClosed() && plane == v1alpha1.DataPlaneEnvoy || len(host.Entries) == 0 {
					continue // without a rule
				}
				if got := inEffect.Of(host.Hostname); !isInEffect(got, host.Access) {
					t.Fatalf("%s, seed %d: in effect, %q requires %+v, want %+v", plane, seed, host.Hostname, got, host.Access)
				}
				tokens += tagsOf(host.Access)
				if host.Access.IsClosed() {
					closed++
				}
			}
		}
		if hasClosed := plane == v1alpha1.DataPlaneIngressRules; tokens == 0 || hasClosed != (closed > 0) {
			t.Errorf("%s: %d hostnames demand tokens, and %d are closed", plane, tokens, closed)
		}
	}
}

// isInEffect reports whether the rules in effect require the same. Rules do not tell an open
// hostname from one that waits for its protection.
func isInEffect(got, want *routing.Requirement) bool {
	return got.Equal(want) || got == nil && want.IsOpen()
}

// tagsOf counts the applications whose tokens a hostname admits.
func tagsOf(r *routing.Requirement) int {
	if !r.DemandsToken() {
		return 0
	}
	return len(r.AUDTags)
}
