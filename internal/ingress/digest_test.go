package ingress_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// entryOf returns an entry for a route in the namespace.
func entryOf(namespace, hostname, path, service string) *routing.Entry {
	e := new(httpEntry(hostname, path, service))
	e.Source.Route = &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: namespace, Name: "route"}}
	return e
}

func digestOf(plane v1alpha1.DataPlane, t *routing.Table) *ingress.Digest {
	return ingress.Render(plane, t, nil).Digest("infra")
}

func TestChangedNamespacesAreThoseWhoseRulesChanged(t *testing.T) {
	a, b := entryOf("team-a", "x.example.com", "/a", "cart"), entryOf("team-b", "x.example.com", "/b", "cart")
	wider := routing.Group{Entries: []*routing.Entry{entryOf("infra", "", "", "pages")}}
	table := func(namespace string, entries ...*routing.Entry) *routing.Table {
		return &routing.Table{ClusterDomain: "cluster.local", Groups: []routing.Group{{Hostname: "x.example.com", Namespace: namespace, Entries: entries}, wider}}
	}
	base := table("sets", a, b)
	recreated := entryOf("team-a", "x.example.com", "/a", "cart")
	recreated.Source.Route.Created = 5
	shadowing := entryOf("team-c", "x.example.com", "/b", "pages")
	later := entryOf("team-b", "x.example.com", "/b", "cart")
	later.Source.Route.Rank = 9
	unreachable := entryOf("team-c", "x.example.com", "/a", "cart")
	withSettings := table("sets", a, b)
	withSettings.OriginRequest = &v1alpha1.OriginRequest{HTTPHostHeader: ptr.To("internal")}
	withAccess := table("sets", a, b)
	withAccess.Access = routing.Access{"x.example.com": {TeamName: "example", AUDTags: []string{"tag"}}}
	withPolicy := table("sets", a, b)
	withPolicy.Access = routing.Access{"x.example.com": {TeamName: "example", AUDTags: []string{"tag"}, Namespace: "sets"}}
	for name, test := range map[string]struct {
		next *routing.Table
		want []string
	}{
		"nothing":                                {table("sets", a, b), nil},
		"another backend":                        {table("sets", entryOf("team-a", "x.example.com", "/a", "pages"), b), []string{"team-a"}},
		"a new rule":                             {table("sets", a, b, entryOf("team-c", "x.example.com", "/c", "cart")), []string{"team-c"}},
		"a removed rule":                         {table("sets", a), []string{"team-b"}},
		"changes of two namespaces":              {table("sets", entryOf("team-b", "x.example.com", "/z", "cart")), []string{"team-a", "team-b"}},
		"a route that is created again":          {table("sets", b, recreated), []string{"team-a"}},
		"a rule that shadows another rule":       {table("sets", a, shadowing, later), []string{"team-c"}},
		"an unreachable rule":                    {table("sets", a, unreachable, entryOf("team-b", "x.example.com", "/z", "cart")), []string{"team-b"}},
		"the 404 rule of another namespace":      {table("other", a, b), []string{"other", "sets"}},
		"the settings of the tunnel":             {withSettings, []string{"infra"}},
		"Cloudflare Access":                      {withAccess, []string{"infra"}},
		"the AccessPolicy of a listener's owner": {withPolicy, []string{"sets"}},
		"the hostname of another listener": {&routing.Table{ClusterDomain: "cluster.local", Groups: []routing.Group{
			{Hostname: "w.example.com", Namespace: "sets"}, base.Groups[0], wider,
		}}, []string{"sets"}},
		"another order with unknown reason": {table("sets", b, a), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := digestOf(v1alpha1.DataPlaneIngressRules, base).ChangedNamespaces(digestOf(v1alpha1.DataPlaneIngressRules, test.next))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the namespaces differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A listener with a wide hostname adds a rule that returns 404 to hostnames in other
// namespaces, although it has no rule of its own.
func TestAListenerWithoutRulesAccountsForTheRulesOfOthers(t *testing.T) {
	narrow := routing.Group{Hostname: "x.example.com", Namespace: "team-a", Entries: []*routing.Entry{entryOf("team-a", "x.example.com", "/a", "cart")}}
	before := digestOf(v1alpha1.DataPlaneIngressRules, &routing.Table{Groups: []routing.Group{narrow}})
	after := digestOf(v1alpha1.DataPlaneIngressRules, &routing.Table{Groups: []routing.Group{narrow, {Hostname: "*.com", Namespace: "team-b"}}})
	for _, got := range [][]string{before.ChangedNamespaces(after), after.ChangedNamespaces(before)} {
		if diff := cmp.Diff([]string{"team-b"}, got); diff != "" {
			t.Errorf("the namespaces differ (-want +got):\n%s", diff)
		}
	}
}

// The rule for a hostname that the settings open is not due to the route behind it.
func TestSettingsAccountForRulesOfSeparateHostnames(t *testing.T) {
	wildcard := routing.Group{Hostname: "*.example.com", Namespace: "sets", Entries: []*routing.Entry{entryOf("team-a", "*.example.com", "", "cart")}}
	token := &routing.Requirement{TeamName: "example", AUDTags: []string{"tag"}}
	table := func(access routing.Access) *routing.Table {
		return &routing.Table{Access: access, Groups: []routing.Group{wildcard}}
	}
	before := digestOf(v1alpha1.DataPlaneIngressRules, table(routing.Access{"*.example.com": token, "a.example.com": nil}))
	after := digestOf(v1alpha1.DataPlaneIngressRules, table(routing.Access{"*.example.com": token}))
	if diff := cmp.Diff([]string{"infra"}, before.ChangedNamespaces(after)); diff != "" {
		t.Errorf("the namespaces differ (-want +got):\n%s", diff)
	}
}

// With Envoy, only hostnames about which the Access settings decide cause writes.
func TestEnvoyDigestNamesNamespacesWithAccess(t *testing.T) {
	table := func(hostnames ...string) *routing.Table {
		t := &routing.Table{Access: routing.Access{"*.example.com": {TeamName: "example"}}}
		for _, hostname := range hostnames {
			namespace, _, _ := strings.Cut(hostname, ".")
			t.Groups = append(t.Groups, routing.Group{Hostname: hostname, Namespace: namespace})
		}
		return t
	}
	before := digestOf(v1alpha1.DataPlaneEnvoy, table("a.example.org"))
	after := digestOf(v1alpha1.DataPlaneEnvoy, table("a.example.org", "b.example.com", "c.example.org"))
	if diff := cmp.Diff([]string{"b"}, before.ChangedNamespaces(after)); diff != "" {
		t.Errorf("namespaces differ (-want +got):\n%s", diff)
	}
	policy := table("b.example.com")
	policy.Access["b.example.com"] = &routing.Requirement{Closed: true, Namespace: "b"}
	protected := table("b.example.com")
	protected.Access["b.example.com"] = &routing.Requirement{TeamName: "example", AUDTags: []string{"tag"}, Namespace: "b"}
	if diff := cmp.Diff([]string{"b"}, digestOf(v1alpha1.DataPlaneEnvoy, policy).ChangedNamespaces(digestOf(v1alpha1.DataPlaneEnvoy, protected))); diff != "" {
		t.Errorf("namespaces of a policy differ (-want +got):\n%s", diff)
	}
	if digestOf(v1alpha1.DataPlaneEnvoy, nil) != nil {
		t.Error("a nil table has a digest")
	}
}
