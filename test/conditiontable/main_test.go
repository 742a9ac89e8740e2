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
	linkTo  = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks: every link of the page leads to a file and to a heading in it.
func TestLinks(t *testing.T) {
	docs := os.DirFS("../../docs")
	content, err := fs.ReadFile(docs, "conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	links := linkTo.FindAllStringSubmatch(string(content), -1)
	if len(links) < 50 {
		t.Fatalf("found %d links", len(links))
	}
	for _, link := range links {
		file, fragment := link[1], strings.TrimPrefix(link[2], "#")
		if file == "" {
			file = "conditions.md"
		}
		target, err := fs.ReadFile(docs, file)
		if err != nil {
			t.Error(err)
			continue
		}
		if fragment != "" && !anchors(string(target))[fragment] {
			t.Errorf("%s has no heading for #%s", file, fragment)
		}
	}
}

// anchors are those of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

// TestCompare removes something from the texts, and adds something, for each
// thing that they are compared with.
func TestCompare(t *testing.T) {
	c := &code{
		types: found{"Accepted": "a.go"}, reasons: found{"Fine": "a.go", "Sad": "b.go"},
		events: map[[2]string]string{{"", "Step"}: "a.go", {"Warning", "Broken"}: "a.go"},
	}
	whole := func() *texts {
		return &texts{
			Kinds: []kind{{Kind: "Gateway", Conditions: []condition{{Type: "Accepted", Reasons: []reason{
				{Status: "True", Reason: "Fine"}, {Status: "Unknown", Reason: "Foreign", Default: "the API server"},
			}}}}},
			Problems: problemSet{Rows: []problem{{Reason: "Sad"}}},
			Events:   eventSet{Rows: []eventRow{{Type: "Normal", Reason: "Step"}, {Type: "Warning", Reason: "Broken"}}},
		}
	}
	if err := whole().compare(c); err != nil {
		t.Errorf("whole: %v", err)
	}
	for want, change := range map[string]func(*texts){
		"the condition Accepted has no text: a.go":                     func(x *texts) { x.Kinds = nil },
		"the condition Gone has a text, and nothing":                   func(x *texts) { x.Kinds[0].Conditions[0].Type = "Gone" },
		"the reason Fine has no text: a.go":                            func(x *texts) { x.Kinds[0].Conditions[0].Reasons[0].Default = "x" },
		"the reason Foreign has a text, and nothing in the code":       func(x *texts) { x.Kinds[0].Conditions[0].Reasons[1].Default = "" },
		"the reason Sad has no text: b.go":                             func(x *texts) { x.Problems.Rows = nil },
		"the event Normal Step has no text: a.go":                      func(x *texts) { x.Events.Rows = x.Events.Rows[1:] },
		"the event Normal Broken has a text, and nothing in the code":  func(x *texts) { x.Events.Rows[1].Type = "Normal" },
		"the event Warning Broken has no text: a.go":                   func(x *texts) { x.Events.Rows[1].Type = "Normal" },
		"the event Warning Step has a text, and nothing in the code m": func(x *texts) { x.Events.Rows[0].Type = "Warning" },
	} {
		changed := whole()
		change(changed)
		if err := changed.compare(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// TestAddCatalogues: the reasons and events of package tunnel are on the page.
func TestAddCatalogues(t *testing.T) {
	whole := func() *texts {
		x := &texts{Kinds: []kind{{Kind: "Tunnel", Catalogued: true, Conditions: []condition{{Type: "Ready"}}}}}
		for _, state := range tunnel.States {
			x.Kinds[0].Conditions[0].Reasons = append(x.Kinds[0].Conditions[0].Reasons, reason{Status: "True", Reason: string(state.Reason)})
		}
		return x
	}
	x := whole()
	x.Problems.More = map[string]string{string(tunnel.ReasonPaused): "[pausing](tunnels.md#pausing)"}
	if err := x.addCatalogues(); err != nil {
		t.Fatal(err)
	}
	page := x.page()
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
		t.Error("the page lacks a link")
	}
	for want, change := range map[string]func(*texts){
		"the reason " + string(tunnel.States[0].Reason) + " of package tunnel is in no condition": func(x *texts) { x.Kinds[0].Conditions[0].Reasons = x.Kinds[0].Conditions[0].Reasons[1:] },
		"package tunnel has no problem Gone":                                                      func(x *texts) { x.Problems.More = map[string]string{"Gone": "x"} },
		"package tunnel has no event Gone":                                                        func(x *texts) { x.Events.More = map[string]string{"Gone": "x"} },
	} {
		changed := whole()
		change(changed)
		if err := changed.addCatalogues(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestCompareCases(t *testing.T) {
	cases := map[said]string{{"Gateway", "Accepted", "True", "Fine"}: "a.golden"}
	for want, reasons := range map[string][]reason{
		"": {{Status: "True", Reason: "Fine"}, {Status: "False", Reason: "Pushed", Unseen: "because"}},
		"Accepted of a Gateway: True Fine has no text: a.golden":                           {},
		"Accepted of a Gateway: False Bad has a text and no golden case":                   {{Status: "True", Reason: "Fine"}, {Status: "False", Reason: "Bad"}},
		"Accepted of a Gateway: True Fine is excused, and there is a golden case: a.golde": {{Status: "True", Reason: "Fine", Unseen: "because"}},
	} {
		x := &texts{Kinds: []kind{{Kind: "Gateway", Conditions: []condition{{Type: "Accepted", Reasons: reasons}}}}}
		switch err := x.compareCases(cases); {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestStatements(t *testing.T) {
	got := statements(`Gateway:
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
	want := map[said]bool{
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
