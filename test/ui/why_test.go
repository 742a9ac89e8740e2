package ui

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// question is a request to explain.
type question struct {
	name, url, method string
	headers           []string
}

// arguments are plan's flags for the question.
func (q question) arguments() []string {
	all := []string{"--why", q.url}
	if q.method != "" {
		all = append(all, "--method", q.method)
	}
	for _, h := range q.headers {
		all = append(all, "--header", h)
	}
	return all
}

func TestWhyEqualsThePlan(t *testing.T) {
	t.Parallel()
	for file, questions := range map[string][]question{
		"internal/plan/testdata/envoy.yaml": {
			{name: "weights", url: "https://shop.example.com/api/x"},
			{name: "a header", url: "https://shop.example.com/api/x", headers: []string{"X-Version: 2"}},
			{name: "a redirect", url: "http://shop.example.com/old"},
			{name: "another method", url: "shop.example.com/v1?debug=1", method: "POST"},
			{name: "two headers", url: "shop.example.com/api", headers: []string{"x-version:3", "accept:text/html"}},
			{name: "no hostname", url: "https://nowhere.example.org/"},
		},
		"internal/plan/testdata/why.yaml": {
			{name: "precedence", url: "https://shop.example.com/cart"},
			{name: "an error", url: "https://broken.example.com/missing"},
			{name: "two Gateways", url: "https://closed.example.com/"},
			{name: "no certificate", url: "https://tls.example.com/"},
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			p := serve(t, nil, "-f", file)
			b := newTab(t)
			b.open(p.link)
			for _, q := range questions {
				t.Run(q.name, func(t *testing.T) { checkWhy(t, b, p.site, q, nil, "-f", file) })
			}
		})
	}
}

// checkWhy types the question, compares the answer with `plan --why`, and opens the link to the
// answer in another tab.
func checkWhy(t *testing.T, b *tab, site string, q question, environment []string, arguments ...string) {
	b.in(t)
	b.open(site + "/why")
	b.focus("#why-url")
	b.enter(q.url)
	b.press(kb.Tab)
	b.enter(q.method)
	b.press(kb.Tab)
	for i, header := range q.headers {
		if i > 0 {
			b.click("button[name=fields]")
			b.waitFor("another field", fmt.Sprintf("document.getElementById('why-header-%d')", i+1))
			b.focus(fmt.Sprintf("#why-header-%d", i+1))
		}
		b.enter(header)
	}
	eval[bool](b, "window.isForm = true") // the form may show an answer already, after another field
	b.press(kb.Enter)
	b.waitFor("an answer", `!window.isForm && location.search && document.querySelector("#page > section, #page > .problem")`)
	answer := b.content()
	command := append(append([]string{"plan"}, arguments...), q.arguments()...)
	checkSteps(t, b, output(t, environment, "tunnel-gateway", command...))
	checkAttempts(t, b, output(t, environment, "tunnel-gateway", append(command, "-o", "json")...))

	other := b.another()
	other.open(eval[string](b, "location.href"))
	if got := other.content(); got != answer {
		t.Errorf("the link shows in another tab\n%s\nwant\n%s", got, answer)
	}
	for name, want := range map[string]string{"#why-url": q.url, "#why-method": q.method} {
		if got := eval[string](other, fmt.Sprintf("document.querySelector(%q).value", name)); got != want {
			t.Errorf("%s in another tab contains %q, want %q", name, got, want)
		}
	}
}

// checkSteps checks that the page contains what plan prints, cell by cell.
func checkSteps(t *testing.T, b *tab, plan []byte) {
	t.Helper()
	shown := strings.Join(strings.Fields(eval[string](b, `document.querySelector("#page").textContent`)), " ")
	isShadowed, isFirst, found := false, true, 0
	for line := range strings.Lines(string(plan)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "Shadowed matches"), strings.HasPrefix(line, "Mismatches"):
			isShadowed = true // checkAttempts compares them
			continue
		case isShadowed && strings.HasPrefix(line, "  "):
			continue
		case isFirst:
			if _, after, ok := strings.Cut(line, " on Gateway "); ok {
				line = after
			} else {
				_, line, _ = strings.Cut(line, ": ")
			}
		}
		isShadowed, isFirst = false, line == ""
		for cell := range strings.SplitSeq(line, "  ") {
			if cell = strings.TrimSpace(cell); cell == "" {
				continue
			}
			found++
			if !strings.Contains(shown, strings.Join(strings.Fields(cell), " ")) {
				t.Errorf("the page does not show %q of plan:\n%s\nbut\n%s", cell, plan, shown)
			}
		}
	}
	if found == 0 {
		t.Errorf("plan prints nothing: %s", plan)
	}
}

// checkAttempts compares the tables with the entries and the listeners.
func checkAttempts(t *testing.T, b *tab, plan []byte) {
	t.Helper()
	var explanation struct {
		Traces []struct {
			Namespace, Name string
			Listeners       []struct {
				plannedListener
				ReceivesRequest bool
			}
			Attempts []struct {
				plannedEntry
				Answers, Matches bool
				Reason           string
			}
		}
	}
	if err := json.Unmarshal(plan, &explanation); err != nil {
		t.Fatal(err)
	}
	var want, wantListeners [][]string
	for _, trace := range explanation.Traces {
		for i, a := range trace.Attempts {
			row := []string{strconv.Itoa(i + 1), fmt.Sprintf("%s (%s, %s)", a.source(), orStar(a.Hostname), a.match()), "does not match", a.Reason}
			switch {
			case a.Answers:
				row[2], row[3] = "answers", ""
			case a.Matches:
				row[2] = "shadowed"
			}
			want = append(want, row)
		}
		for _, l := range trace.Listeners {
			mark := ""
			if l.ReceivesRequest {
				mark = ">"
			}
			wantListeners = append(wantListeners, []string{mark, orStar(l.Hostname), fmt.Sprintf("%d %s", l.Port, l.Protocol), l.Owner.String(), l.Name})
		}
	}
	rows := func(heading string, columns int) (all [][]string) {
		return eval[[][]string](b, fmt.Sprintf(`[...document.querySelectorAll(".steps > li")].filter((l) => l.querySelector("h3").textContent.startsWith(%q)).flatMap((l) => [...l.querySelectorAll("tbody tr")].map((r) => [...r.cells].slice(0, %d).map((c) => c.innerText.trim())))`, heading, columns))
	}
	if got := rows("Entries", 4); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the page shows the entries\n%q\nplan has\n%q", got, want)
	}
	if got := rows("Hostname", 5); fmt.Sprint(got) != fmt.Sprint(wantListeners) {
		t.Errorf("the page shows the listeners\n%q\nplan has\n%q", got, wantListeners)
	}
}

func TestWhySaysWhatIsWrongWithTheQuestion(t *testing.T) {
	t.Parallel()
	p := serve(t, nil, "-f", "config/samples")
	b := newTab(t)
	b.open(p.link)
	b.open(p.site + "/why")
	b.focus("#why-url")
	b.enter("ftp://shop.example.com/")
	b.press(kb.Tab + kb.Tab)
	b.enter("no colon")
	b.press(kb.Enter)
	b.waitFor("the problems", `document.querySelectorAll("[aria-invalid=true]").length === 2`)
	for _, problem := range eval[[]string](b, `[...document.querySelectorAll("[aria-invalid=true]")].map((e) => document.getElementById(e.getAttribute("aria-describedby")).innerText)`) {
		if problem == "" {
			t.Error("a field does not say what is wrong")
		}
	}
}

// in reports the tab's failures to the test t.
func (b *tab) in(t *testing.T) {
	t.Helper()
	outer := b.t
	b.t = t
	t.Cleanup(func() {
		b.check()
		b.t = outer
	})
}

// enter enters the text at once, as an input method does.
func (b *tab) enter(text string) {
	b.t.Helper()
	call(b, input.InsertText, input.InsertTextParams{Text: text})
}

func (b *tab) focus(selector string) {
	b.t.Helper()
	if !eval[bool](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e?.focus(); return !!e && document.activeElement === e })()`, selector)) {
		b.t.Fatalf("%s does not take the focus", selector)
	}
}

// selectAll selects the text in the field with the focus.
var selectAll = chromedp.Evaluate[chromedp.Void]("document.activeElement.select()")

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(selector))
}
