package envoy

import "testing"

// TestRequestHeaderModifier shows that a header that is set moves to the end, and that
// all its lines get the spelling of the first one.
func TestRequestHeaderModifier(t *testing.T) {
	run(t, []row{
		{"GET request-headers.example.com/set", "200 one GET /set\n> x-set: new"},
		{"GET request-headers.example.com/set\nX-Set: old\nX-Set: older", "200 one GET /set\n> X-Set: new"},
		{"GET request-headers.example.com/add", "200 one GET /add\n> x-add: new"},
		{"GET request-headers.example.com/add\nX-Add: old\nX-Other: 1", "200 one GET /add\n> X-Add: old\n> X-Other: 1\n> X-Add: new"},
		{"GET request-headers.example.com/remove\nX-Remove: 1\nX-Other: 1\nx-remove: 2", "200 one GET /remove\n> X-Other: 1"},
		{
			"GET request-headers.example.com/all\nX-Remove: 1\nX-Set: old\nX-Add: old",
			"200 one GET /all\n> X-Add: old\n> X-Set: set\n> X-Add: added",
		},
		{
			"GET request-headers.example.com/literal",
			"200 one GET /literal\n> x-percent: 100% %PROTOCOL% %%\n> x-environment: %ENVIRONMENT(PATH)%\n> x-text: é\t\"x\" \\",
		},
		{
			"GET request-headers.example.com/backend\nX-Remove: 1\nX-Set: old\nX-Add: old",
			"200 one GET /backend\n> X-Add: old\n> X-Set: backend\n> X-Add: backend",
		},
		{
			"GET request-headers.example.com/composed\nX-Set: old\nX-Add: old\nX-Readded: old\nX-Removed-Later: old",
			`200 one GET /composed
			> X-Add: old
			> X-Readded: backend
			> X-Set: backend
			> X-Add: rule
			> X-Add: backend`,
		},
		{"GET request-headers.example.com/connector", "200 one GET /connector\n> X-Forwarded-Proto: http"},
	})
}

func TestResponseHeaderModifier(t *testing.T) {
	run(t, []row{
		{"GET response-headers.example.com/all", "200 one GET /all\n< x-set: set\n< x-add: added"},
		{
			"GET response-headers.example.com/all\nRespond: X-Set: old\nRespond: X-Set: older\nRespond: X-Add: old\nRespond: X-Remove: 1",
			"200 one GET /all\n< X-Add: old\n< X-Set: set\n< X-Add: added",
		},
		{"GET response-headers.example.com/literal", "200 one GET /literal\n< x-percent: 100% %PROTOCOL%"},
		{
			"GET response-headers.example.com/composed\nRespond: X-Set: old\nRespond: X-Add: old\nRespond: X-Removed: old",
			"200 one GET /composed\n< X-Add: old\n< X-Removed: rule\n< X-Set: rule\n< X-Add: backend\n< X-Add: rule",
		},
		{"GET response-headers.example.com/server\nRespond: Server: nginx", "200 one GET /server\n< Server: hidden"},
		{
			"GET response-headers.example.com/redirect",
			"302\n< location: https://elsewhere.example.com/redirect\n< x-set: set\n< cache-control: no-store",
		},
		{"GET response-headers.example.com/unresolved", "500\n< x-set: set"},
		{"GET response-headers.example.com/refuses", "503\n< x-set: set"},
		{"GET response-headers.example.com/weights", "200 two GET /weights\n< x-set: two"},
	})
}
