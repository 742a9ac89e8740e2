package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

var (
	markdownLink    = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	markdownHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	htmlAnchor      = regexp.MustCompile(`<a id="([^"]+)"></a>`)
)

func TestEveryLinkOfTheConditionsPageLeadsToAnAnchor(t *testing.T) {
	directory := os.DirFS(docs)
	content, err := fs.ReadFile(directory, "conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	links := markdownLink.FindAllStringSubmatch(string(content), -1)
	if len(links) < 50 {
		t.Fatalf("got %d links, want at least 50", len(links))
	}
	for _, match := range links {
		file, fragment := match[1], strings.TrimPrefix(match[2], "#")
		if file == "" {
			file = "conditions.md"
		}
		target, err := fs.ReadFile(directory, file)
		if err != nil {
			t.Error(err)
			continue
		}
		if fragment != "" && !anchors(string(target))[fragment] {
			t.Errorf("%s has no anchor #%s", file, fragment)
		}
	}
}

// anchors returns the anchors of a page: those of its headings and those that
// are written in HTML.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range htmlAnchor.FindAllStringSubmatch(page, -1) {
		all[match[1]] = true
	}
	page = htmlAnchor.ReplaceAllString(page, "")
	for _, match := range markdownHeading.FindAllStringSubmatch(page, -1) {
		all[anchor(match[1])] = true
	}
	return all
}

// wantError fails the test unless the error contains the text. No error is
// expected if the text is empty.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("got error %v, want none", err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("got error %v, want an error with %q", err, text)
	}
}

// matchingTexts returns texts that match the reports of
// TestTextsMustMatchTheCode.
func matchingTexts() *conditionTexts {
	return &conditionTexts{
		Kinds: []kindTexts{{Kind: "Gateway", Conditions: []conditionText{{Type: "Accepted", Reasons: []reasonText{
			{Status: "True", Reason: "Fine"}, {Status: "Unknown", Reason: "Default", SetBy: "the API server"},
		}}}}},
		Problems: problemTexts{rows: []tunnel.Entry{{Reason: "Sad"}}},
		Events:   eventTexts{Rows: []eventText{{Type: "Normal", Reason: "Step"}, {Type: "Warning", Reason: "Broken"}}},
	}
}

func TestTextsMustMatchTheCode(t *testing.T) {
	r := &reports{
		types: positions{"Accepted": "a.go"}, reasons: positions{"Fine": "a.go", "Sad": "b.go"},
		events: map[eventKey]string{{"", "Step"}: "a.go", {"Warning", "Broken"}: "a.go"},
	}
	wantError(t, matchingTexts().compareCode(r), "")
	for want, change := range map[string]func(*conditionTexts){
		"condition Accepted: no text, but a.go uses it":    func(x *conditionTexts) { x.Kinds = nil },
		"condition Gone: a text, but no code uses it":      func(x *conditionTexts) { x.Kinds[0].Conditions[0].Type = "Gone" },
		"reason Fine: no text, but a.go uses it":           func(x *conditionTexts) { x.Kinds[0].Conditions[0].Reasons[0].SetBy = "x" },
		"reason Default: a text, but no code uses it":      func(x *conditionTexts) { x.Kinds[0].Conditions[0].Reasons[1].SetBy = "" },
		"reason Sad: no text, but b.go uses it":            func(x *conditionTexts) { x.Problems.rows = nil },
		"event Normal Step: no text, but a.go uses it":     func(x *conditionTexts) { x.Events.Rows = x.Events.Rows[1:] },
		"event Normal Broken: a text, but no code uses it": func(x *conditionTexts) { x.Events.Rows[1].Type = "Normal" },
		"event Warning Broken: no text, but a.go uses it":  func(x *conditionTexts) { x.Events.Rows[1].Type = "Normal" },
		"event Warning Step: a text, but no code uses it":  func(x *conditionTexts) { x.Events.Rows[0].Type = "Warning" },
	} {
		changed := matchingTexts()
		change(changed)
		wantError(t, changed.compareCode(r), want)
	}
}

// catalogueTexts returns texts with all states of package tunnel.
func catalogueTexts() *conditionTexts {
	var reasons []reasonText
	for _, state := range tunnel.States {
		reasons = append(reasons, reasonText{Status: "True", Reason: string(state.Reason)})
	}
	return &conditionTexts{Kinds: []kindTexts{{Kind: "Tunnel", Catalogued: true, Conditions: []conditionText{{Type: "Ready", Reasons: reasons}}}}}
}

func TestPageHasEveryReasonAndEventOfTunnels(t *testing.T) {
	texts := catalogueTexts()
	texts.Problems.Links = map[string]string{string(tunnel.ReasonPaused): "[pausing](tunnels.md#pausing)"}
	if err := texts.addCatalogue(); err != nil {
		t.Fatal(err)
	}
	page := texts.page()
	for _, entry := range tunnel.Catalogue {
		if !strings.Contains(page, "| `"+string(entry.Reason)+"` | "+cell(entry.Meaning)+" | ") {
			t.Errorf("the page has no row for %s", entry.Reason)
		}
	}
	for _, entry := range tunnel.Events {
		if !strings.Contains(page, cell(entry.Meaning)) {
			t.Errorf("the page has no row for the event %s", entry.Reason)
		}
	}
	if !strings.Contains(page, "See [pausing](tunnels.md#pausing).") {
		t.Error("the page has no link to pausing")
	}
}

func TestTextsMustMatchTheCatalogueOfTunnels(t *testing.T) {
	for want, change := range map[string]func(*conditionTexts){
		"no condition has the reason " + string(tunnel.States[0].Reason) + " of package tunnel": func(x *conditionTexts) {
			x.Kinds[0].Conditions[0].Reasons = x.Kinds[0].Conditions[0].Reasons[1:]
		},
		"package tunnel has no problem Gone": func(x *conditionTexts) { x.Problems.Links = map[string]string{"Gone": "x"} },
		"package tunnel has no event Gone":   func(x *conditionTexts) { x.Events.Links = map[string]string{"Gone": "x"} },
	} {
		changed := catalogueTexts()
		change(changed)
		wantError(t, changed.addCatalogue(), want)
	}
}

func TestTextsMustMatchTheGoldenCases(t *testing.T) {
	golden := map[reasonKey]string{{"Gateway", "Accepted", "True", "Fine"}: "a.golden"}
	for want, reasons := range map[string][]reasonText{
		"": {{Status: "True", Reason: "Fine"}, {Status: "False", Reason: "Pushed", NotGolden: "because"}},
		"Gateway Accepted: True Fine: no text, but a.golden has it":                  {},
		"Gateway Accepted: False Bad: no golden case; give the reason in notGolden":  {{Status: "True", Reason: "Fine"}, {Status: "False", Reason: "Bad"}},
		"Gateway Accepted: True Fine: exempt from golden cases, but a.golden has it": {{Status: "True", Reason: "Fine", NotGolden: "because"}},
	} {
		texts := &conditionTexts{Kinds: []kindTexts{{Kind: "Gateway", Conditions: []conditionText{{Type: "Accepted", Reasons: reasons}}}}}
		wantError(t, texts.compareGolden(golden), want)
	}
}

func TestReasonsAreReadFromGoldenStatuses(t *testing.T) {
	got := parseGoldenStatus(`Gateway:
  attachedListenerSets: 0
  address: "Hostname 6ff4.cfargotunnel.com"
  tunnelgateway.dev/HostnameShared: "True HostnameShared: Other"
  listener home:
    Accepted: "True Accepted"
ListenerSet team-a/web:
  Accepted: "True Accepted"
  listener home:
    Accepted: "False Invalid: It is not."
HTTPRoute team-a/web:
  ListenerSet web section home:
    ResolvedRefs: "False BackendNotFound: Rule 0."
`)
	want := map[reasonKey]bool{
		{"Gateway", "tunnelgateway.dev/HostnameShared", "True", "HostnameShared"}: true,
		{"Gateway listener", "Accepted", "True", "Accepted"}:                      true,
		{"ListenerSet", "Accepted", "True", "Accepted"}:                           true,
		{"ListenerSet entry", "Accepted", "False", "Invalid"}:                     true,
		{"Route", "ResolvedRefs", "False", "BackendNotFound"}:                     true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
