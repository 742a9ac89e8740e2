package ingress_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func accessTo(application string) *routing.Requirement {
	return &routing.Requirement{TeamName: "example", AUDTags: []string{application}}
}

// A hostname in the settings has a rule exactly where it decides about a hostname in the
// table, and its access differs from the next wider hostname with a rule. Each rule is
// written as HOSTNAME:PORT with the AUD tag.
func TestEnvoyHasRulesOnlyForAccess(t *testing.T) {
	const open = "*:10080"
	groups := func(hostnames ...string) []routing.Group {
		all := make([]routing.Group, len(hostnames))
		for i, hostname := range hostnames {
			all[i] = groupOf(hostname)
		}
		return all
	}
	for name, test := range map[string]struct {
		groups []routing.Group
		access routing.Access
		want   []string
	}{
		"no hostname":  {nil, nil, []string{open}},
		"no access":    {groups("a.example.com", "*.example.com", ""), nil, []string{open}},
		"one hostname": {groups("admin.example.com", "www.example.com"), routing.Access{"admin.example.com": accessTo("a")}, []string{"admin.example.com:10081 a", open}},
		"a hostname without entries": {[]routing.Group{{Hostname: "admin.example.com"}}, routing.Access{"admin.example.com": accessTo("a")},
			[]string{"admin.example.com:10081 a", open}},
		"a hostname that the table does not cover": {groups("www.example.com"), routing.Access{"admin.example.org": accessTo("a")}, []string{open}},
		"a hostname below a wildcard":              {groups("*.example.com"), routing.Access{"admin.example.com": accessTo("a")}, []string{"admin.example.com:10081 a", open}},
		"a wildcard":                               {groups("www.example.com", "*.example.com"), routing.Access{"*.example.com": accessTo("a")}, []string{"*.example.com:10081 a", open}},
		"an open hostname below a wildcard": {groups("www.example.com", "*.example.com"), routing.Access{"*.example.com": accessTo("a"), "www.example.com": nil},
			[]string{"www.example.com:10080", "*.example.com:10081 a", open}},
		"another application below a wildcard": {groups("*.example.com"), routing.Access{"*.example.com": accessTo("a"), "www.example.com": accessTo("b")},
			[]string{"www.example.com:10081 b", "*.example.com:10081 a", open}},
		"the same application below a wildcard": {groups("*.example.com"), routing.Access{"*.example.com": accessTo("a"), "www.example.com": accessTo("a")},
			[]string{"*.example.com:10081 a", open}},
		"a protected hostname below an open one below a wildcard": {groups("*.example.com"),
			routing.Access{"*.example.com": accessTo("a"), "*.b.example.com": nil, "c.b.example.com": accessTo("a")},
			[]string{"c.b.example.com:10081 a", "*.b.example.com:10080", "*.example.com:10081 a", open}},
		"hosts without hostname": {groups("*.example.com", ""), routing.Access{"": accessTo("a")}, []string{"*:10081 a"}},
		"an open hostname below hosts without hostname": {groups("www.example.com", "shop.example.com", ""),
			routing.Access{"": accessTo("a"), "www.example.com": nil}, []string{"www.example.com:10080", "*:10081 a"}},
		"access for every host, and no listener without hostname": {groups("www.example.com", "*.example.com"), routing.Access{"": accessTo("a")},
			[]string{"*:10081 a"}},
		"many hostnames, and no listener with the hostname of the settings": {groups("a.example.com", "b.example.com", "c.b.example.com"),
			routing.Access{"*.example.com": accessTo("a")}, []string{"*.example.com:10081 a", open}},
		"an exempted hostname below a hostname that no listener has": {groups("a.example.com", "www.example.com"),
			routing.Access{"*.example.com": accessTo("a"), "www.example.com": nil}, []string{"www.example.com:10080", "*.example.com:10081 a", open}},
		"a closed hostname": {groups("a.example.com"), routing.Access{"a.example.com": {Closed: true}}, []string{open}},
		"a closed hostname below a protected wildcard": {groups("a.example.com", "*.example.com"),
			routing.Access{"a.example.com": {Closed: true}, "*.example.com": accessTo("a")}, []string{"*.example.com:10081 a", open}},
		"an open hostname below a closed wildcard below a protected one": {groups("*.example.com"),
			routing.Access{"*.example.com": accessTo("a"), "*.b.example.com": {Closed: true}, "c.b.example.com": nil},
			[]string{"c.b.example.com:10080", "*.example.com:10081 a", open}},
		"closed hosts without hostname": {groups("www.example.com", ""), routing.Access{"": {Closed: true}, "www.example.com": accessTo("a")},
			[]string{"www.example.com:10081 a", open}},
		"an exempted hostname that no listener has": {groups("a.example.com"),
			routing.Access{"*.example.com": accessTo("a"), "www.example.com": nil}, []string{"*.example.com:10081 a", open}},
	} {
		t.Run(name, func(t *testing.T) {
			c := ingress.EnvoyConfiguration(&routing.Table{Groups: test.groups, Access: test.access, ClusterDomain: "cluster.local"})
			if err := provider.Validate(*c); err != nil {
				t.Errorf("the connector rejects the configuration: %v", err)
			}
			if diff := cmp.Diff(test.want, written(c.Ingress)); diff != "" {
				t.Errorf("the rules differ (-want +got):\n%s", diff)
			}
		})
	}
}

// written returns each rule in one line.
func written(rules []provider.IngressRule) []string {
	lines := make([]string, len(rules))
	for i, rule := range rules {
		hostname, port := rule.Hostname, strings.TrimPrefix(rule.Service, "http://127.0.0.1:")
		if hostname == "" {
			hostname = "*"
		}
		lines[i] = fmt.Sprintf("%s:%s", hostname, port)
		if access := rule.OriginRequest.Access; access != nil {
			lines[i] += " " + strings.Join(access.AUDTag, ",")
		}
	}
	return lines
}

func TestConnectorsKeepTheirConnectionsToEnvoy(t *testing.T) {
	got := ingress.EnvoyConfiguration(&routing.Table{OriginRequest: &v1alpha1.OriginRequest{NoTLSVerify: new(true)}}).OriginRequest
	want := provider.OriginRequest{ConnectTimeout: new(int64(5)), KeepAliveConnections: new(int64(1000)), KeepAliveTimeout: new(int64(60))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("originRequest differs (-want +got):\n%s", diff)
	}
	if got := ingress.EnvoyConfiguration(nil); got != nil {
		t.Errorf("without a table: %v, want none", got)
	}
}
