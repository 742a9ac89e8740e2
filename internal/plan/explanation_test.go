package plan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// requests are the requests of testdata/why.txt.
var requests = []string{
	"shop.example.com/cart",     // all criteria of precedence
	"shop.example.com/named",    // all precedence criteria
	"shop.example.com/cart/1",   // a prefix and omitted matches
	"shop.example.com/",         // no match for the hostname; a less specific listener does not receive the request
	"other.shops.example.net",   // a wildcard and a route for another hostname that it covers
	"x.example.com",             // a wildcard
	"a.example.com",             // a listener with a wildcard and a route with the hostname
	"tls.example.com/cart",      // a listener that is not programmed
	"closed.example.com",        // two Gateways: one is not accepted, the other allows no route
	"unknown.example.org/",      // no listener
	"deep.shop.example.com/any", // a subdomain below a hostname
	"broken.example.com/filter", // an action that a tunnel cannot express
	"broken.example.com/missing",
	"broken.example.com/no-backend",
	"https://SHOP.example.com/cart", // in another form, a wildcard
	"http://x.Example.com./",        // in another form, no listener
}

func TestExplanationsMatchTheGoldenFile(t *testing.T) {
	p := buildPlan(t, read(t, "", "testdata/why.yaml"), now)
	var got bytes.Buffer
	for _, text := range requests {
		request, err := routing.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("# " + text + "\n")
		if err := p.Explain(request).WriteTable(&got, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		got.WriteString("\n")
	}
	compareGolden(t, "testdata/why.txt", got.String())
}

// A wide style prints the entries that are tried before the answer.
func TestWideExplanationHasMismatches(t *testing.T) {
	p := buildPlan(t, read(t, "", "testdata/why.yaml"), now)
	var got bytes.Buffer
	if err := p.Explain(routing.Request{Host: "shop.example.com", Path: "/cart/1"}).WriteTable(&got, plan.Style{Wide: true}); err != nil {
		t.Fatal(err)
	}
	want := `
Entries that are tried before and do not match:
  HTTPRoute team/shopping rule 0 match 0 (shop.example.com, Exact /named): the path is /cart/1, not /named
  HTTPRoute team/shop rule 0 match 0 (shop.example.com, Exact /cart): the path is /cart/1, not /cart
  HTTPRoute team/younger rule 0 match 0 (shop.example.com, Exact /cart): the path is /cart/1, not /cart
Shadowed matches, next in precedence first:
`
	if !strings.Contains(got.String(), want) {
		t.Errorf("got:\n%s\nwant the lines:%s", got.String(), want)
	}
}

// The JSON encoding has the same content as the text, and empty lists instead of null.
func TestExplanationInJSON(t *testing.T) {
	p := buildPlan(t, read(t, "", "testdata/why.yaml"), now)
	text, err := json.Marshal(p.Explain(routing.Request{Host: "shop.example.com", Path: "/cart"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"request":{"host":"shop.example.com","path":"/cart"},"traces":[{"namespace":"infra","name":"shared","listeners":[`,
		`"receivesRequest":true`, `"answer":{"entry":{"hostname":"shop.example.com","match":"Exact /cart"`, `"route":{"kind":"HTTPRoute","namespace":"team","name":"shop"},"rule":0,"matchIndex":0`,
		`"via":[{"owner":{"kind":"ListenerSet","namespace":"team","name":"shop"},"listener":"shop"}]`, `"backends":[{"backend":"http://web.team.svc.cluster.local:80","percent":100}]`, `"reason":"its route is younger"`,
		`"reason":"HostnameConflict"`, `"others":[]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the JSON does not contain %s:\n%s", want, text)
		}
	}
	unmatched, _ := json.Marshal(p.Explain(routing.Request{Host: "shop.example.com", Path: "/"}))
	if want := `"others":[{"route":{"kind":"HTTPRoute","namespace":"team","name":"shop"},"hostnames":[],"matches":["Exact /cart",`; !strings.Contains(string(unmatched), want) {
		t.Errorf("the JSON does not contain %s:\n%s", want, unmatched)
	}
	unknown, _ := json.Marshal(p.Explain(routing.Request{Host: "unknown.test", Path: "/"}))
	if want := `{"request":{"host":"unknown.test","path":"/"},"traces":[],"detached":[]}`; string(unknown) != want {
		t.Errorf("got %s, want %s", unknown, want)
	}
}
