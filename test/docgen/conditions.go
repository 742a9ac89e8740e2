package main

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// goldenStatuses are the statuses of the golden cases, relative to package
// gateway.
const goldenStatuses = "testdata/*.status.golden.yaml"

// The headings that other parts of the page link to.
const (
	problemsHeading = "Problems of a tunnel"
	eventsHeading   = "Events"
)

var (
	//go:embed conditions.head.md
	conditionsHead string
	//go:embed conditions.texts.yaml
	conditionsTexts []byte
)

// conditionsPages returns the page with every condition, reason and event of the
// controller. It reads the files of package gateway in the current directory. It
// returns an error if the texts lack a reason that the code or a golden case
// reports, or describe a reason that neither reports.
func conditionsPages() ([]page, error) {
	texts, err := readTexts(conditionsTexts)
	if err != nil {
		return nil, fmt.Errorf("read the texts: %w", err)
	}
	reported, err := readReports(root)
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	golden, err := readGoldenStatuses(goldenStatuses)
	if err != nil {
		return nil, fmt.Errorf("read the golden cases: %w", err)
	}
	if err := errors.Join(texts.compareCode(reported), texts.compareGolden(golden), texts.checkTests(root)); err != nil {
		return nil, fmt.Errorf("test/docgen/conditions.texts.yaml does not match the code:\n%w", err)
	}
	return []page{{"conditions.md", conditionsHead + texts.page()}}, nil
}

// page returns the text that follows the head of the page.
func (t *conditionTexts) page() string {
	var b strings.Builder
	b.WriteString("\n## By reason\n\n" + t.reasonIndex().String())
	for i := range t.Kinds {
		t.Kinds[i].write(&b)
	}
	problems := newTable("Reason", "Meaning", "What to do", "Action required")
	for _, row := range t.Problems.rows {
		actionRequired := "no"
		if row.RequiresAction {
			actionRequired = "yes"
		}
		problems.add(code(string(row.Reason)), cell(row.Meaning), cell(row.Remedy), actionRequired)
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", problemsHeading, wrap(t.Problems.Intro), problems)
	events := newTable("Type", "Reason", "Object", "Meaning", "What to do")
	for _, row := range t.Events.Rows {
		events.add(row.Type, code(row.Reason), row.Object, cell(row.Meaning), cell(row.Remedy))
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", eventsHeading, wrap(t.Events.Intro), events)
	return b.String()
}

// reasonIndex returns a table that leads from each reason to the headings that
// describe it.
func (t *conditionTexts) reasonIndex() *table {
	links := map[string][]string{}
	add := func(reason, heading string) {
		if l := link(heading); !slices.Contains(links[reason], l) {
			links[reason] = append(links[reason], l)
		}
	}
	for _, k := range t.Kinds {
		for _, c := range k.Conditions {
			for _, r := range c.Reasons {
				add(r.Reason, k.heading(c.Type))
			}
		}
	}
	for _, row := range t.Problems.rows {
		add(string(row.Reason), problemsHeading)
	}
	for _, row := range t.Events.Rows {
		add(row.Reason, eventsHeading)
	}
	index := newTable("Reason", "Described under")
	for _, reason := range slices.Sorted(maps.Keys(links)) {
		index.add(code(reason), strings.Join(links[reason], ", "))
	}
	return index
}

func (k *kindTexts) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", k.Title, wrap(k.Intro))
	for i := range k.Conditions {
		k.Conditions[i].write(b, k.heading(k.Conditions[i].Type))
	}
}

func (c *conditionText) write(b *strings.Builder, heading string) {
	fmt.Fprintf(b, "\n### %s\n\n", heading)
	if strings.Contains(c.Type, "/") {
		fmt.Fprintf(b, "%s\n\n", code(c.Type))
	}
	t := newTable("Status", "Reason", "Meaning", "What to do")
	for _, r := range c.Reasons {
		meaning := r.Meaning
		if r.SetBy != "" {
			meaning += " " + r.SetBy + " sets this reason."
		}
		t.add(r.Status, code(r.Reason), cell(meaning), cell(r.Remedy))
	}
	if c.Problems != "" {
		t.add("False", "any problem", cell(c.Problems), "See "+link(problemsHeading)+".")
	}
	fmt.Fprintf(b, "%s\n\n%s", wrap(c.About), t)
}

// heading returns the heading of a condition: its type without the domain.
func (k *kindTexts) heading(conditionType string) string {
	return k.Short + " " + conditionType[strings.LastIndex(conditionType, "/")+1:]
}
