package plan_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

var update = flag.Bool("update", false, "write the files of what is wanted")

// asked are the requests of testdata/why.txt.
var asked = []string{
	"shop.example.com/cart",     // all that a rule can win by
	"shop.example.com/named",    // a route that names the hostname goes first
	"shop.example.com/cart/1",   // a prefix, and matches that are left out
	"shop.example.com/",         // nothing of the hostname's own; a wider listener does not get it
	"other.shops.example.net",   // a wildcard, and a route for another of its hostnames
	"x.example.com",             // a wildcard
	"a.example.com",             // a wildcard's listener, and a route that names the host
	"tls.example.com/cart",      // a listener that is not in effect
	"closed.example.com",        // two Gateways; one is not accepted, one admits nobody
	"elsewhere.example.org/",    // nobody
	"deep.shop.example.com/any", // below a hostname
	"broken.example.com/filter", // what a tunnel cannot do
	"broken.example.com/missing",
	"broken.example.com/nobody",
}

func TestWhy(t *testing.T) {
	made := makePlan(t, read(t, "", "testdata/why.yaml"), now)
	var got bytes.Buffer
	for _, text := range asked {
		request, err := gateway.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("# " + text + "\n")
		if err := made.Explain(request).WriteTable(&got); err != nil {
			t.Fatal(err)
		}
		got.WriteString("\n")
	}
	const path = "testdata/why.txt"
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The JSON form says what the text says, and has no null where a list belongs.
func TestWhyAsJSON(t *testing.T) {
	made := makePlan(t, read(t, "", "testdata/why.yaml"), now)
	text, err := json.Marshal(made.Explain(gateway.Request{Host: "shop.example.com", Path: "/cart"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"request":{"host":"shop.example.com","path":"/cart"},"trails":[{"namespace":"infra","name":"shared","listeners":[`,
		`"belongs":true`, `"number":2,"hostname":"shop.example.com","path":"^/cart$"`, `"route":{"kind":"HTTPRoute","namespace":"team","name":"shop"},"rule":0,"match":0`,
		`"through":[{"owner":{"kind":"ListenerSet","namespace":"team","name":"shop"},"listener":"shop"}]`, `"hiddenBy":2,"because":"its route is younger"`,
		`"number":null`, `"reason":"HostnameConflict"`, `"elsewhere":[]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it does not have %s:\n%s", want, text)
		}
	}
	missed, _ := json.Marshal(made.Explain(gateway.Request{Host: "shop.example.com", Path: "/"}))
	if want := `"elsewhere":[{"route":{"kind":"HTTPRoute","namespace":"team","name":"shop"},"hostnames":[],"paths":["^/cart$",`; !strings.Contains(string(missed), want) {
		t.Errorf("it does not have %s:\n%s", want, missed)
	}
	nobody, _ := json.Marshal(made.Explain(gateway.Request{Host: "nobody.test", Path: "/"}))
	if want := `{"request":{"host":"nobody.test","path":"/"},"trails":[]}`; string(nobody) != want {
		t.Errorf("got %s, want %s", nobody, want)
	}
}
