package ingress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// groupOf returns a group with an entry for every request.
func groupOf(hostname string) routing.Group {
	return routing.Group{Hostname: hostname, Entries: []*routing.Entry{new(httpEntry(hostname, "", "pages"))}}
}

func TestAccessGapsAreBelowUnprotectedHostnames(t *testing.T) {
	access := &routing.Requirement{TeamName: "example", AUDTags: []string{"tag"}}
	other := &routing.Requirement{TeamName: "example", AUDTags: []string{"other"}}
	for name, test := range map[string]struct {
		groups []routing.Group
		access routing.Access
		want   []routing.AccessGap
	}{
		"no wider hostname":                    {[]routing.Group{groupOf("admin.example.com"), groupOf("www.example.com")}, routing.Access{"admin.example.com": access}, nil},
		"a wildcard of the same listener":      {[]routing.Group{groupOf("*.example.com")}, routing.Access{"admin.example.com": access}, []routing.AccessGap{{Hostname: "admin.example.com", Through: "*.example.com"}}},
		"a wildcard of another listener":       {[]routing.Group{groupOf("admin.example.com"), groupOf("*.example.com")}, routing.Access{"admin.example.com": access}, []routing.AccessGap{{Hostname: "admin.example.com", Through: "*.example.com"}}},
		"a listener without a hostname":        {[]routing.Group{groupOf("*.example.com"), groupOf("")}, routing.Access{"*.example.com": access}, []routing.AccessGap{{Hostname: "*.example.com"}}},
		"a wildcard with other access":         {[]routing.Group{groupOf("*.example.com")}, routing.Access{"admin.example.com": access, "*.example.com": other}, nil},
		"a protected wildcard below an open":   {[]routing.Group{groupOf("*.a.example.com"), groupOf("*.example.com")}, routing.Access{"x.a.example.com": access, "*.a.example.com": access}, []routing.AccessGap{{Hostname: "x.a.example.com", Through: "*.example.com"}, {Hostname: "*.a.example.com", Through: "*.example.com"}}},
		"a wildcard without a backend":         {[]routing.Group{groupOf("admin.example.com"), {Hostname: "*.example.com", Entries: []*routing.Entry{new(failure("*.example.com", ""))}}}, routing.Access{"admin.example.com": access}, nil},
		"a wildcard without routes":            {[]routing.Group{groupOf("admin.example.com"), {Hostname: "*.example.com"}}, routing.Access{"admin.example.com": access}, nil},
		"a wildcard of another domain":         {[]routing.Group{groupOf("admin.example.com"), groupOf("*.example.org")}, routing.Access{"admin.example.com": access}, nil},
		"a label without letters":              {[]routing.Group{groupOf("1.example.com"), groupOf("*.example.com")}, routing.Access{"1.example.com": access}, nil},
		"a wildcard with a label of digits":    {[]routing.Group{groupOf("*.1.example.com"), groupOf("*.example.com")}, routing.Access{"admin.1.example.com": access, "*.1.example.com": other}, nil},
		"a name of digits, with a dot":         {[]routing.Group{groupOf("1.2"), groupOf("")}, routing.Access{"1.2": access}, []routing.AccessGap{{Hostname: "1.2"}}},
		"an exempt hostname below a protected": {[]routing.Group{groupOf("*.example.com")}, routing.Access{"*.example.com": access, "www.example.com": nil}, nil},
		"a protected hostname below an exempt": {[]routing.Group{groupOf("*.example.com")}, routing.Access{"": access, "*.example.com": nil, "admin.example.com": access}, []routing.AccessGap{{Hostname: "admin.example.com", Through: "*.example.com"}}},
		"a closed hostname":                    {[]routing.Group{groupOf("admin.example.com"), groupOf("*.example.com")}, routing.Access{"admin.example.com": {Closed: true}}, []routing.AccessGap{{Hostname: "admin.example.com", Through: "*.example.com"}}},
		"a closed wildcard":                    {[]routing.Group{groupOf("admin.example.com"), groupOf("*.example.com")}, routing.Access{"admin.example.com": access, "*.example.com": {Closed: true}}, nil},
		"no access":                            {[]routing.Group{groupOf("*.example.com")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := ingress.AccessGaps(&routing.Table{Groups: test.groups, Access: test.access, ClusterDomain: "cluster.local"})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the gaps differ (-want +got):\n%s", diff)
			}
		})
	}
}
