package ui

import (
	"net/url"
	"strings"
	"testing"
)

// TestTextsOfTenantsRunNoScript visits pages with hostile texts. Dialogs, errors, and what the
// Content-Security-Policy prevents are on the console, which fails the test.
func TestTextsOfTenantsRunNoScript(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "test/ui/testdata/hostile.yaml")
	b := newTab(t)
	b.open(p.link)
	var shown strings.Builder
	check := func(path string) {
		shown.WriteString(b.content())
		if eval[bool](b, `window.hacked !== undefined || !!document.querySelector("img, iframe, [onload], [onerror], [onfocus], [autofocus], script:not([src]), #page script")`) {
			t.Errorf("%s contains an element of a tenant: %s", path, eval[string](b, `document.querySelector("#page").outerHTML`))
		}
	}
	visit(t, b, p.site, check)
	for _, path := range []string{"/hostname?gateway=infra/shared&name=shop.example.com", "/why?url=shop.example.com/"} {
		b.open(p.site + path)
		check(path)
	}
	for _, text := range []string{
		`><img src=x onerror=`, `/<script>window.hacked=1</script>`, `"><svg onload="window.hacked=1">`, `' autofocus onfocus='`,
		`</title></script><script>`, `<iframe srcdoc=`, `<div hx-get=`, `javascript:window.hacked=1`, `/--><img/src=x`,
	} {
		if !strings.Contains(shown.String(), text) {
			t.Errorf("no page shows %s", text)
		}
	}

	const text = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`
	b.allow("404") // a hostname that does not exist
	for _, path := range []string{"/hostnames?q=", "/hostnames?state=", "/hostname?name=", "/why?url=", "/why?url=shop.example.com&header=", "/picture?hostname=", "/namespaces?gateway="} {
		b.open(p.site + path + url.QueryEscape(text))
		check(path)
	}
	b.open(p.site + "/hostnames")
	b.focus("#q")
	b.enter(text)
	b.waitFor("the answer", `location.search.includes("hacked")`)
	check("the search")
}
