package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Ingress rules need only some of these outcomes. The explanation supports every action
// in the routing table.
func TestOutcomeDescribesEveryAction(t *testing.T) {
	backend := func(name string) routing.Backend {
		return routing.Backend{Service: types.NamespacedName{Namespace: "team", Name: name}, Port: 80, Protocol: routing.ProtocolHTTP}
	}
	add := &routing.HeaderChanges{Add: []routing.Header{{Name: "x-version", Value: "2"}}, Remove: []string{"x-old"}}
	timeout := time.Second
	for name, test := range map[string]struct {
		action *routing.Action
		want   Outcome
	}{
		"no entry": {nil, Outcome{Status: 404}},
		"a status": {
			&routing.Action{Status: 500, Problem: &routing.Problem{Reason: "BackendNotFound", Cause: "no backendRefs"}},
			Outcome{Status: 500, Failure: "BackendNotFound: the rule returns 500 (no backendRefs)."},
		},
		"a redirect": {
			&routing.Action{Redirect: &routing.Redirect{Status: 301, Path: &routing.PathChange{Prefix: true, Value: "/new"}}, Response: add},
			Outcome{Status: 301, Location: "https://a.example.com/new/page?q=1", Changes: []string{
				`response header x-version added with "2"`, "response headers removed: x-old",
			}},
		},
		"weighted backends": {
			&routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{
				{Backend: backend("one"), Weight: 3, Response: add}, {Status: 500, Weight: 1},
			}}},
			Outcome{Backends: []Share{
				{Backend: "http://one.team.svc.cluster.local:80", Percent: 75, Changes: []string{`response header x-version added with "2"`, "response headers removed: x-old"}},
				{Backend: "status 500", Percent: 25},
			}},
		},
		"filters and policies": {
			&routing.Action{
				Forward: &routing.Forward{
					Backends: []routing.WeightedBackend{{Backend: backend("one"), Weight: 1}},
					Filters: &routing.Filters{
						Request: &routing.HeaderChanges{Set: []routing.Header{{Name: "x-a", Value: "b"}}},
						Rewrite: routing.Rewrite{Hostname: "b.example.com", Path: &routing.PathChange{Value: "/x"}},
						Mirrors: []routing.Mirror{{Backend: backend("mirror"), Numerator: 5, Denominator: 100}},
					},
					Timeouts: &routing.Timeouts{Request: &timeout, Backend: &timeout},
					Retry:    &routing.Retry{Codes: []int{502, 503}, Attempts: 3},
				},
				CORS: &routing.CORS{AllowOrigins: []string{"https://b.example.com"}},
			},
			Outcome{
				Backends: []Share{{Backend: "http://one.team.svc.cluster.local:80", Percent: 100}},
				Changes: []string{
					"host b.example.com", "path /x", `request header x-a set to "b"`, "5/100 of the requests mirrored to http://mirror.team.svc.cluster.local:80",
					"request timeout 1s", "timeout of each attempt 1s",
					"up to 3 retries on 502, 503, timeouts and connection errors",
					"CORS headers for https://b.example.com",
				},
			},
		},
		"a retry without status codes": {
			&routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: backend("one"), Weight: 1}}, Retry: &routing.Retry{Attempts: 1}}},
			Outcome{
				Backends: []Share{{Backend: "http://one.team.svc.cluster.local:80", Percent: 100}},
				Changes:  []string{"up to 1 retry if the request did not reach the backend"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var entry *routing.Entry
			if test.action != nil {
				entry = &routing.Entry{Match: &routing.Match{Path: routing.Path{Value: "/old"}}, Action: test.action}
			}
			request := routing.Request{Host: "a.example.com", Path: "/old/page", Query: "q=1"}
			if diff := cmp.Diff(test.want, newOutcome(entry, request, "cluster.local")); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}
