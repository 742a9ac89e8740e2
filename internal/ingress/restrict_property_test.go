package ingress_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// answers evaluates a configuration as a connector does.
type answers struct {
	configuration provider.Configuration
	rules         *simulator.Rules
}

func answersOf(t *testing.T, c provider.Configuration) answers {
	t.Helper()
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := simulator.Compile(encoded)
	if err != nil {
		t.Fatalf("the connector rejects the configuration: %v\n%s", err, encoded)
	}
	return answers{c, rules}
}

// answer is what a connector does with a request.
type answer struct {
	backend  string // empty for a status
	verifies bool
	access   *provider.AccessSettings
	status   string
}

func (a answers) to(host, path string) answer {
	index, service, _ := a.rules.Match(host, path)
	if strings.HasPrefix(service, "http_status:") {
		return answer{status: service}
	}
	rule, defaults := a.configuration.Ingress[index].OriginRequest, a.configuration.OriginRequest
	got := answer{backend: service + " " + rule.HTTPHostHeader + " " + defaults.OriginServerName, verifies: true}
	for _, set := range []*bool{defaults.NoTLSVerify, rule.NoTLSVerify} {
		if set != nil && strings.HasPrefix(service, "https:") {
			got.verifies = !*set
		}
	}
	if rule.Access != nil && rule.Access.Required {
		got.access = rule.Access
	}
	return got
}

// accepts reports whether the request reaches the backend with the token; the empty token
// stands for none.
func (a answer) accepts(token string) bool {
	if a.backend == "" {
		return false
	}
	return a.access == nil || slices.Contains(a.access.AUDTag, token)
}

// tokens are the audiences in the random configurations, and no token.
var tokens = []string{"", "staff", "ops"}

var (
	hostnames = []string{"a.example.com", "b.example.com", "x.b.example.com", "a.example.org", "*.b.example.com", "*.example.com", "*.example.org", ""}
	hosts     = []string{"a.example.com", "b.example.com", "x.b.example.com", "y.b.example.com", "c.example.com", "a.example.org", "other.test", "A.example.com"}
	paths     = []string{"^/a$", "^/a(/|$)", "^/a/b(/|$)", "^/c(/|$)", "^/[ab].*$", ""}
	requests  = []string{"/", "/a", "/a/b", "/a/b/c", "/b", "/c/d", "/ab"}
)

// randomRules returns a configuration with its rules in the order that this package
// renders.
func randomRules(dice *rand.Rand) provider.Configuration {
	c := provider.Configuration{}
	if dice.IntN(4) == 0 {
		c.OriginRequest.NoTLSVerify = ptr.To(true)
	}
	for _, hostname := range hostnames {
		if hostname != "" && dice.IntN(2) == 0 {
			continue
		}
		for _, path := range paths {
			if path == "" && (hostname == "" || dice.IntN(3) > 0) {
				c.Ingress = append(c.Ingress, randomRule(dice, hostname, path))
			} else if path != "" && dice.IntN(3) == 0 {
				c.Ingress = append(c.Ingress, randomRule(dice, hostname, path))
			}
		}
	}
	return c
}

func randomRule(dice *rand.Rand, hostname, path string) provider.IngressRule {
	services := []string{"http://one:80", "http://two:80", "https://three:443", "https://three:443", "http_status:404", "http_status:500"}
	r := provider.IngressRule{Hostname: hostname, Path: path, Service: services[dice.IntN(len(services))]}
	switch dice.IntN(6) {
	case 0:
		r.OriginRequest.Access = &provider.AccessSettings{Required: true, TeamName: "team", AUDTag: []string{tokens[1+dice.IntN(2)]}}
	case 1:
		r.OriginRequest.Access = &provider.AccessSettings{Required: true, TeamName: "team", AUDTag: tokens[1:]}
	case 2:
		r.OriginRequest.NoTLSVerify = ptr.To(dice.IntN(2) == 0)
	}
	return r
}

// changed returns the configuration with some rules changed, removed, added or in another
// order.
func changed(dice *rand.Rand, c provider.Configuration) provider.Configuration {
	next := provider.Configuration{OriginRequest: c.OriginRequest}
	if dice.IntN(8) == 0 {
		next.OriginRequest.NoTLSVerify = ptr.To(dice.IntN(2) == 0)
	}
	other := randomRules(dice)
	rules := slices.Concat(c.Ingress[:len(c.Ingress)-1], other.Ingress[:min(1, len(other.Ingress)-1)], c.Ingress[len(c.Ingress)-1:])
	for i, rule := range rules {
		isLast := i == len(rules)-1
		switch dice.IntN(8) {
		case 0:
			if !isLast {
				continue
			}
		case 1:
			rule = randomRule(dice, rule.Hostname, rule.Path)
		}
		next.Ingress = append(next.Ingress, rule)
	}
	if dice.IntN(4) == 0 {
		next.Ingress = closing(next.Ingress, hostnames[dice.IntN(len(hostnames))])
	}
	rank := func(r provider.IngressRule) int { return slices.Index(hostnames, r.Hostname) }
	slices.SortStableFunc(next.Ingress, func(a, b provider.IngressRule) int { return rank(a) - rank(b) })
	if n := len(next.Ingress); n > 2 && dice.IntN(4) == 0 {
		i := dice.IntN(n - 2)
		if a, b := next.Ingress[i], next.Ingress[i+1]; a.Hostname == b.Hostname {
			next.Ingress[i], next.Ingress[i+1] = b, a
		}
	}
	return next
}

// closing returns the rules with one that returns 403 instead of all for the hostname.
func closing(rules []provider.IngressRule, hostname string) []provider.IngressRule {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r provider.IngressRule) bool { return r.Hostname == hostname })
	return append(rules, provider.IngressRule{Hostname: hostname, Service: "http_status:403"})
}

// restrictCheck checks one pair of configurations.
type restrictCheck struct {
	last, desired, restricted answers
	revokes                   bool
	// same counts the requests that both configurations forward alike, kept the requests
	// among them that the restricted configuration forwards alike, and revoked the
	// requests for whose backend only the last one has a rule.
	same, kept, revoked int
}

func (c *restrictCheck) check(t *testing.T, host, path string) {
	t.Helper()
	l, d, r := c.last.to(host, path), c.desired.to(host, path), c.restricted.to(host, path)
	isSame := l.backend != "" && l.backend == d.backend
	if r.backend != "" && (!isSame || r.backend != l.backend || !r.verifies && (l.verifies || d.verifies)) {
		t.Errorf("%s%s reaches %+v, but the last configuration answers %+v, and the desired one %+v", host, path, r, l, d)
	}
	c.checkTokens(t, host+path, l, d, r)
	if isSame && l.verifies == d.verifies && slices.Equal(tags(l), tags(d)) {
		if c.same++; r.backend == l.backend {
			c.kept++
		}
	}
}

// checkTokens checks which tokens the answers accept.
func (c *restrictCheck) checkTokens(t *testing.T, request string, l, d, r answer) {
	t.Helper()
	takesAway := false
	for _, token := range tokens {
		both := l.accepts(token) && d.accepts(token)
		if r.accepts(token) && !both {
			t.Errorf("%s reaches %+v with token %q, but the last configuration answers %+v, and the desired one %+v", request, r, token, l, d)
		}
		takesAway = takesAway || l.accepts(token) && !both
	}
	if !takesAway {
		return
	}
	if c.revoked++; !c.revokes {
		t.Errorf("%s is revoked (%+v, then %+v), but Restrict does not report it", request, l, d)
	}
}

func tags(a answer) []string {
	if a.access == nil {
		return nil
	}
	return a.access.AUDTag
}

// The restricted configuration forwards only requests that the last and the desired
// configuration forward alike, it reports every revocation, and it revokes nothing a
// second time.
func TestRestrictedConfigurationForwardsOnlyWhatBothForward(t *testing.T) {
	same, kept, revoked := 0, 0, 0
	for seed := range uint64(5_000) {
		dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the test must be reproducible
		last := randomRules(dice)
		desired := changed(dice, last)
		if dice.IntN(10) == 0 {
			desired = randomRules(dice)
		}
		restricted, revokes := ingress.Restrict(last, desired)
		c := &restrictCheck{last: answersOf(t, last), desired: answersOf(t, desired), restricted: answersOf(t, restricted), revokes: revokes}
		for _, host := range hosts {
			for _, path := range requests {
				c.check(t, host, path)
			}
		}
		if again, repeated := ingress.Restrict(restricted, desired); repeated {
			t.Errorf("the restricted configuration is restricted again:\n%s", printRules(again))
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n--- last\n%s--- desired\n%s--- restricted\n%s", seed, printRules(last), printRules(desired), printRules(restricted))
		}
		same, kept, revoked = same+c.same, kept+c.kept, revoked+c.revoked
	}
	t.Logf("%d revoked requests; %d of %d requests with the same backend keep it", revoked, kept, same)
	if revoked < 5_000 || kept < same*97/100 {
		t.Errorf("%d revoked requests; %d of %d requests with the same backend keep it, want at least 97 %%", revoked, kept, same)
	}
}
