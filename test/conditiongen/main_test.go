package main

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

var (
	markdownLink    = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	markdownHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	htmlAnchor      = regexp.MustCompile(`<a id="([^"]+)"></a>`)
)

func TestConditionsPageLinksLeadToAnchors(t *testing.T) {
	directory := os.DirFS(root + "/docs")
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

// anchors returns the anchors on a page: from its headings, and anchors written in HTML.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range htmlAnchor.FindAllStringSubmatch(page, -1) {
		all[match[1]] = true
	}
	page = htmlAnchor.ReplaceAllString(page, "")
	for _, match := range markdownHeading.FindAllStringSubmatch(page, -1) {
		all[markdown.Anchor(match[1])] = true
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

// entries is a catalogue with one entry in each section.
const entries = `
types: [{name: example.org/Fine, event: true, optional: true}]
tunnelTypes: [{name: Fine, expected: "False"}]
kinds:
- kind: Gateway
  short: Gateway
  variable: GatewayTypes
  conditions:
  - type: example.org/Fine
    reasons:
    - {status: "True", reason: Good, meaning: Good., remedy: Nothing.}
    - {status: Unknown, reason: Default, setBy: The API server, meaning: New., remedy: Wait.}
- kind: Tunnel
  short: Tunnel
  notGolden: because
  conditions:
  - {type: Fine, reasons: [{status: "True", reason: Sad}]}
problems:
  rows:
  - {reason: Sad, requiresAction: true, meaning: Sad., remedy: Smile., see: "[smiling](smiling.md)"}
events:
  rows:
  - {type: Warning, reason: Left, object: Gateway, meaning: Left., remedy: Return.}
`

func TestEveryEntryHasAVariable(t *testing.T) {
	c, err := readCatalogue([]byte(entries))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.variables()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`TypeFine = Type{name: "example.org/Fine", expected: metav1.ConditionTrue, event: true, optional: true}`,
		`TypeTunnelFine = Type{name: "Fine", expected: metav1.ConditionFalse}`,
		`GatewayTypes = []Type{TypeFine}`,
		`ReasonGood = Reason{"Good"}`,
		`ReasonSad  = Reason{"Sad"}`,
		`EventLeft = EventReason{name: "Left", warning: true}`,
		`{ReasonSad, "Sad.", true},`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the variables do not contain %s:\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "Default") {
		t.Error("a reason that only another component sets has a variable")
	}
}

func TestPageHasEveryEntry(t *testing.T) {
	c, err := readCatalogue([]byte(entries))
	if err != nil {
		t.Fatal(err)
	}
	page := c.page()
	for _, want := range []string{
		"| True | `Good` | Good. | Nothing. |",
		"| Unknown | `Default` | New. The API server sets this reason. | Wait. |",
		"| True | `Sad` | Sad. | Smile. |", // the texts of the problem
		"| `Sad` | Sad. | Smile. See [smiling](smiling.md). | yes |",
		"| Warning | `Left` | Gateway | Left. | Return. |",
		"| `Sad` | [Tunnel Fine](#tunnel-fine), [Tunnel problems](#tunnel-problems) |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %s:\n%s", want, page)
		}
	}
}

func TestWrongEntriesAreErrors(t *testing.T) {
	for want, change := range map[string][2]string{
		"Gateway example.org/Fine: True Good: meaning or remedy missing":   {"meaning: Good., ", ""},
		"Gateway example.org/Fine: the type is not in the list of types":   {"{name: example.org/Fine", "{name: example.org/Other"},
		"type example.org/Other: no kind has it":                           {"{name: example.org/Fine", "{name: example.org/Other"},
		"Tunnel Fine: the type is not in the list of types":                {"{name: Fine, ", "{name: Other, "},
		"Tunnel Fine: True Gone: meaning or remedy missing":                {"reason: Sad}]", "reason: Gone}]"},
		"problem Sad: a user must act, but the remedy describes no action": {"Smile.", "Wait."},
		"event Left: the type must be Normal or Warning, got \"Loud\"":     {"type: Warning", "type: Loud"},
		"event Left: meaning or remedy does not end with a period":         {"Return.", "Return"},
		"event left: not a valid reason":                                   {"reason: Left", "reason: left"},
		"unknown field":                                                    {"setBy:", "by:"},
	} {
		_, err := readCatalogue([]byte(strings.Replace(entries, change[0], change[1], 1)))
		wantError(t, err, want)
	}
}

func TestCatalogueMustMatchTheGoldenCases(t *testing.T) {
	golden := map[reasonKey]string{{"Gateway", "Accepted", "True", "Fine"}: "a.golden"}
	for want, reasons := range map[string][]reasonEntry{
		"": {{Status: "True", Reason: "Fine"}, {Status: "False", Reason: "Pushed", NotGolden: "because"}},
		"Gateway Accepted: True Fine: no text, but a.golden has it":                  {},
		"Gateway Accepted: False Bad: no golden case; give the reason in notGolden":  {{Status: "True", Reason: "Fine"}, {Status: "False", Reason: "Bad"}},
		"Gateway Accepted: True Fine: exempt from golden cases, but a.golden has it": {{Status: "True", Reason: "Fine", NotGolden: "because"}},
	} {
		c := &catalogue{Kinds: []kindEntry{{Kind: "Gateway", Conditions: []conditionEntry{{Type: "Accepted", Reasons: reasons}}}}}
		wantError(t, c.compareGolden(golden), want)
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
