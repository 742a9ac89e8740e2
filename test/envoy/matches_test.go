package envoy

import "testing"

func TestHeaderMatches(t *testing.T) {
	run(t, []row{
		{"GET headers.example.com/exact\nX-Version: 2", "200 one GET /exact"},
		{"GET headers.example.com/exact\nx-version: 2", "200 one GET /exact"},
		{"GET headers.example.com/exact\nX-VERSION: 2", "200 one GET /exact"},
		{"GET headers.example.com/exact\nX-Version:2", "200 one GET /exact\n> X-Version: 2"},
		{"GET headers.example.com/exact\nX-Version: 20", "404"},
		{"GET headers.example.com/exact\nX-Version: ", "404"},
		{"GET headers.example.com/exact", "404"},
		{"GET headers.example.com/regex\nX-Version: 1", "200 two GET /regex"},
		{"GET headers.example.com/regex\nX-Version: 25", "200 two GET /regex"},
		{"GET headers.example.com/regex\nX-Version: 2", "404"},
		{"GET headers.example.com/regex\nX-Version: 11", "404"},
		{"GET headers.example.com/both\nX-B: b\nX-A: a", "200 three GET /both"},
		{"GET headers.example.com/both\nX-A: a", "404"},
		{"GET headers.example.com/either\nX-A: a", "200 three GET /either"},
		{"GET headers.example.com/either\nX-B: b", "200 three GET /either"},
		{"GET headers.example.com/either\nX-B: a", "404"},
		{"GET headers.example.com/any\nX-Any: x", "200 four GET /any"},
		{"GET headers.example.com/any\nX-Any:", "200 four GET /any\n> X-Any: "},
		{"GET headers.example.com/any", "404"},
		{"GET headers.example.com/cookie\nCookie: a=b; canary=1", "200 four GET /cookie"},
		{"GET headers.example.com/host", "200 five GET /host"},
		{"GET headers.example.com/forwarded", "200 five GET /forwarded"},
		{"GET headers.example.com/te\nTE: trailers", "200 five GET /te"},
	})
}

// TestRepeatedHeaderLines shows how Envoy compares a header with several lines.
func TestRepeatedHeaderLines(t *testing.T) {
	run(t, []row{
		{"GET headers.example.com/exact\nX-Version: 1\nX-Version: 2", "200 one GET /exact"},
		{"GET headers.example.com/exact\nX-Version: 1, 2", "404"},
		{"GET headers.example.com/exact\nX-Version: 1\nX-Version: 3", "404"},
		{"GET headers.example.com/regex\nX-Version: 9\nX-Version: 1", "200 two GET /regex"},
		{"GET headers.example.com/commas\nX-List: a,b", "200 four GET /commas"},
		{"GET headers.example.com/commas\nX-List: a\nX-List: b", "404"},
		{"GET headers.example.com/cookie\nCookie: a=b\nCookie: canary=1", "200 four GET /cookie"},
	})
}

func TestQueryMatches(t *testing.T) {
	run(t, []row{
		{"GET query.example.com/exact?animal=whale", "200 one GET /exact?animal=whale"},
		{"GET query.example.com/exact?x=1&animal=whale&y=2", "200 one GET /exact?x=1&animal=whale&y=2"},
		{"GET query.example.com/exact?animal=whales", "404"},
		{"GET query.example.com/exact?Animal=whale", "404"},
		{"GET query.example.com/exact?animal=", "404"},
		{"GET query.example.com/exact?animal", "404"},
		{"GET query.example.com/exact", "404"},
		{"GET query.example.com/exact?animal=whale&animal=dolphin", "200 one GET /exact?animal=whale&animal=dolphin"},
		{"GET query.example.com/exact?animal=dolphin&animal=whale", "404"},
		{"GET query.example.com/regex?animal=dolphin", "200 two GET /regex?animal=dolphin"},
		{"GET query.example.com/regex?animal=a-dolphin", "404"},
		{"GET query.example.com/two?b=2&a=1", "200 three GET /two?b=2&a=1"},
		{"GET query.example.com/two?a=1", "404"},
		{"GET query.example.com/any?q", "200 four GET /any?q"},
		{"GET query.example.com/any?q=", "200 four GET /any?q="},
		{"GET query.example.com/any?qq=", "404"},
	})
}

// TestQueryIsNotDecoded shows that Envoy compares parameters as they are in the URL.
func TestQueryIsNotDecoded(t *testing.T) {
	run(t, []row{
		{"GET query.example.com/exact?animal=%77hale", "404"},
		{"GET query.example.com/exact?%61nimal=whale", "404"},
		{"GET query.example.com/plus?q=a+b", "200 five GET /plus?q=a+b"},
		{"GET query.example.com/plus?q=a%20b", "200 one GET /plus?q=a%20b"},
		{"GET query.example.com/exact?animal=whale;x=1", "404"},
		{"GET query.example.com/exact?x=1;animal=whale", "404"},
	})
}

func TestMethodMatches(t *testing.T) {
	run(t, []row{
		{"GET methods.example.com/", "200 one GET /"},
		{"POST methods.example.com/", "200 two POST /"},
		{"OPTIONS methods.example.com/", "200 four OPTIONS /"},
		{"PATCH methods.example.com/x", "200 three PATCH /x"},
		{"PATCH methods.example.com/", "404"},
		{"PUT methods.example.com/", "404"},
		{"DELETE methods.example.com/any", "200 five DELETE /any"},
		{"TRACE methods.example.com/any", "200 five TRACE /any"},
		{"PROPFIND methods.example.com/any", "200 five PROPFIND /any"},
		{"PURGE methods.example.com/any", "200 five PURGE /any"},
		{"X-CUSTOM methods.example.com/any", "200 five X-CUSTOM /any"},
		{"GET methods.example.com/any", "200 five GET /any"},
		{"get methods.example.com/", "404"},
	})
}

func TestMatchPrecedence(t *testing.T) {
	run(t, []row{
		{"GET precedence.example.com/?a=1&b=1", "200 one GET /?a=1&b=1"},
		{"GET precedence.example.com/?a=1&b=1\nX-A: a", "200 two GET /?a=1&b=1"},
		{"GET precedence.example.com/\nX-A: a\nX-B: b", "200 three GET /"},
		{"PUT precedence.example.com/\nX-A: a\nX-B: b", "200 four PUT /"},
		{"PUT precedence.example.com/long\nX-A: a", "200 five PUT /long"},
	})
}
