package web_test

import (
	"bytes"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/net/html"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

// sentences returns the texts of cells, list items and paragraphs.
func sentences(document *html.Node) map[string]bool {
	all := map[string]bool{}
	for _, n := range elements(document, hasTag("td", "th", "span", "p", "h2")) {
		all[textOf(n)] = true
	}
	return all
}

// shadowedLine is a line about an entry that does not answer: the entry and the reason.
var shadowedLine = regexp.MustCompile(`^((?:HTTP|GRPC)Route \S+ rule \d+ match \d+ \(.*\)): (.*)$`)

// printedSentences returns the texts that plan --why prints, each cell of a table by itself.
func printedSentences(t *testing.T, e *plan.Explanation) []string {
	t.Helper()
	var out bytes.Buffer
	if err := e.WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	var all []string
	isTable, isShadowed := false, false
	for line := range strings.Lines(out.String()) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, e.Request.String()+" on Gateway "):
			text = strings.TrimPrefix(text, e.Request.String()+" on ") // the page has the request in its form
		case strings.HasPrefix(text, "HOSTNAME"):
			isTable = true
		case !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, ">"):
			isTable, isShadowed = false, strings.HasPrefix(text, "Shadowed matches")
			if isShadowed {
				continue // the page has them among all entries
			}
		}
		if parts := shadowedLine.FindStringSubmatch(text); isShadowed && parts != nil {
			all = append(all, parts[1:]...)
			continue
		}
		if isTable {
			all = append(all, regexp.MustCompile(` {2,}`).Split(text, -1)...)
		} else if text != "" {
			all = append(all, strings.Join(strings.Fields(text), " "))
		}
	}
	return all
}

// requestsOf returns requests for every hostname of a plan, for hostnames below and beside
// them, and for the paths, methods and headers in the matches of its routes.
func requestsOf(p *plan.Plan) []url.Values {
	hosts := hostsOf(p)
	paths := map[string]bool{"/": true}
	for host := range hosts {
		for _, t := range p.Explain(routing.Request{Host: host, Path: "/"}).Traces {
			for _, a := range t.Attempts {
				if _, path, ok := strings.Cut(a.Match, " /"); ok && !strings.ContainsAny(path, ".*+[(\\") {
					path, _, _ = strings.Cut(path, ",")
					paths["/"+path] = true
				}
			}
		}
	}
	var all []url.Values
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			u := url.URL{Scheme: "https", Host: host, Path: path}
			all = append(all, url.Values{"url": {u.String()}})
		}
		u := url.URL{Scheme: "http", Host: strings.ToUpper(host), Path: "/x"}
		all = append(all, url.Values{"url": {u.String()}, "method": {"post"}, "header": {"x-version: 2", "beta:1"}})
	}
	return sampled(all, 8)
}

// hostsOf returns every hostname of a plan, and hostnames below and beside them.
func hostsOf(p *plan.Plan) map[string]bool {
	hosts := map[string]bool{"unknown.example.org": true}
	for i := range p.Gateways {
		for _, l := range p.Gateways[i].Listeners {
			if rest, wildcard := strings.CutPrefix(l.Hostname, "*"); wildcard {
				hosts["any"+rest] = true
			} else if l.Hostname != "" {
				hosts[l.Hostname] = true
			}
		}
	}
	for _, h := range p.Hostnames() {
		hosts[h] = true
	}
	return hosts
}

// sampled returns at most n of the values, evenly distributed.
func sampled[T any](all []T, n int) []T {
	n = min(n, len(all))
	few := make([]T, n)
	for i := range few {
		few[i] = all[i*len(all)/n]
	}
	return few
}

// The page has the answer of plan --why, in the same sentences, for requests to every case
// of the golden files.
func TestWhyHasTheSentencesOfPlanWhy(t *testing.T) {
	files, err := filepath.Glob("../gateway/testdata/*.in.yaml")
	if err != nil || len(files) < 100 {
		t.Fatalf("got %d files, and the error %v", len(files), err)
	}
	more, _ := filepath.Glob("../plan/testdata/*.yaml")
	compared := 0
	for _, file := range append(files, more...) {
		manifests, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, source := planText(t, string(manifests))
			v := newVisitor(t, &web.Snapshot{Plan: p, Time: planTime})
			assumed, err := plan.BuildAssumingApplications(t.Context(), source, planOptions, planTime)
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range requestsOf(p) {
				compareWhy(t, v, assumed, source, query)
				compared++
			}
		})
	}
	if compared < 1000 {
		t.Errorf("only %d requests were compared", compared)
	}
}

// compareWhy compares the page for the query with what plan --why prints.
func compareWhy(t *testing.T, v *visitor, assumed *plan.Plan, source *state.Source, query url.Values) {
	t.Helper()
	request, err := routing.ParseRequest(query.Get("url"))
	if err != nil {
		return // a hostname that no request can have
	}
	request.Method = strings.ToUpper(query.Get("method"))
	for _, header := range query["header"] {
		if err := request.AddHeader(header); err != nil {
			t.Fatal(err)
		}
	}
	if err := assumed.ReadEndpoints(t.Context(), source, request); err != nil {
		t.Fatal(err)
	}
	e := assumed.Explain(request)
	document := v.page(t, "/why?"+query.Encode())
	shown := sentences(document)
	for _, text := range printedSentences(t, e) {
		if !shown[text] && !shown[strings.TrimSuffix(text, ":")] {
			t.Errorf("%v: the page lacks %q; it has:\n%s", query, text, textOf(document))
			return
		}
	}
	marked := elements(document, func(n *html.Node) bool { return hasClass("ok")(n) && textOf(n) == "answers" })
	if answers := countAnswers(e); len(marked) != answers {
		t.Errorf("%v: the page marks %d entries that answer, want %d", query, len(marked), answers)
	}
}

// countAnswers counts the Gateways on which an entry answers.
func countAnswers(e *plan.Explanation) int {
	answers := 0
	for _, trace := range e.Traces {
		if trace.Answer != nil && trace.Answer.Entry != nil {
			answers++
		}
	}
	return answers
}

const whyRoutes = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: shop, hostname: shop.example.com, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: infra, annotations: {tunnelgateway.dev/paused: "true"}}
spec:
  parentRefs: [{name: shared}]
  rules: [{matches: [{path: {value: /cart}}], backendRefs: [{name: missing, port: 80}]}]
`

// What is wrong with an input stands beside its field, in the words of plan --why, and the
// form keeps every input.
func TestWhyExplainsInputs(t *testing.T) {
	p, _ := planText(t, whyRoutes)
	v := newVisitor(t, &web.Snapshot{Plan: p, Time: planTime})
	for name, test := range map[string]struct {
		query  url.Values
		fields map[string]string // the problem by the ID of a field
	}{
		"nothing yet":   {url.Values{}, nil},
		"an empty form": {url.Values{"url": {""}, "method": {""}, "header": {""}}, map[string]string{"why-url": `"" has no hostname; use HOST, HOST/PATH or a URL`}},
		"a scheme":      {url.Values{"url": {"ftp://shop.example.com"}}, map[string]string{"why-url": `scheme "ftp" is not supported; use http or https`}},
		"two headers": {
			url.Values{"url": {"shop.example.com"}, "header": {"a:1", "", "b", "c: "}, "fields": {"2"}},
			map[string]string{"why-header-2": `must be of the form NAME:VALUE, got "b"`},
		},
		"everything": {
			url.Values{"url": {"*"}, "header": {`:"><script>`}},
			map[string]string{"why-url": `"*" is not a valid hostname, such as shop.example.com`, "why-header-1": `must be of the form NAME:VALUE, got ":\"><script>"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			document := v.page(t, "/why?"+test.query.Encode())
			got := map[string]string{}
			for _, input := range elements(document, func(n *html.Node) bool { return attribute(n, "aria-invalid") == "true" }) {
				described := elements(document, hasID(attribute(input, "aria-describedby")))
				if len(described) != 1 {
					t.Fatalf("the field %s has %d descriptions", attribute(input, "id"), len(described))
				}
				got[attribute(input, "id")] = textOf(described[0])
			}
			if diff := cmp.Diff(test.fields, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems by field (-want +got):\n%s", diff)
			}
			if answered := len(elements(document, hasClass("steps"))) > 0; answered {
				t.Error("the page answers without a valid request")
			}
			kept := formValues(document)
			for field, values := range test.query {
				for _, value := range values {
					if field != "fields" && !slices.Contains(kept[field], value) {
						t.Errorf("the form lacks %s %q: %v", field, value, kept)
					}
				}
			}
		})
	}
}

// formValues returns the values of the inputs by their names.
func formValues(document *html.Node) map[string][]string {
	values := map[string][]string{}
	for _, input := range elements(document, hasTag("input")) {
		values[attribute(input, "name")] = append(values[attribute(input, "name")], attribute(input, "value"))
	}
	return values
}

// A form that is sent with the button for another header has one more empty field.
func TestWhyAddsHeadersWithoutScripts(t *testing.T) {
	p, _ := planText(t, whyRoutes)
	v := newVisitor(t, &web.Snapshot{Plan: p, Time: planTime})
	query := url.Values{"url": {"https://shop.example.com/cart"}, "header": {"a:1"}}
	for want := 2; want < 4; want++ {
		document := v.page(t, "/why?"+query.Encode())
		got := formValues(document)["header"]
		if len(got) != want || got[0] != "a:1" || got[want-1] != "" {
			t.Fatalf("got the fields %q, want %d", got, want)
		}
		button := elements(document, func(n *html.Node) bool { return attribute(n, "name") == "fields" })
		query.Set("fields", attribute(button[0], "value"))
	}
}

// Mistakes in objects and the warning that no route answers are on the page too.
func TestWhyShowsWarnings(t *testing.T) {
	p, _ := planText(t, whyRoutes)
	v := newVisitor(t, &web.Snapshot{Plan: p, Time: planTime})
	for url, want := range map[string]string{
		"shop.example.com/cart": "HTTPRoute infra/shop: annotation tunnelgateway.dev/paused has no effect on kind HTTPRoute; it belongs on kind Gateway",
		"shop.example.com/":     "no route answers shop.example.com/",
		"shpo.example.com/":     "shpo.example.com is not served; did you mean shop.example.com?",
	} {
		if text := textOf(v.page(t, "/why?url="+url)); !strings.Contains(text, want) {
			t.Errorf("the page for %s lacks %q:\n%s", url, want, text)
		}
	}
}
