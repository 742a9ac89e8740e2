package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

// The headings that other parts on the page link to.
const (
	problemsHeading = "Tunnel problems"
	eventsHeading   = "Events"
)

//go:embed conditions.head.md
var conditionsHead string

// page returns the text after the hand-written head.
func (c *catalogue) page() string {
	var b strings.Builder
	b.WriteString("\n## By reason\n\n" + c.reasonIndex().String())
	for i := range c.Kinds {
		c.Kinds[i].write(&b)
	}
	problems := markdown.NewTable("Reason", "Meaning", "What to do", "Action required")
	for _, row := range c.Problems.Rows {
		actionRequired := "no"
		if row.RequiresAction {
			actionRequired = "yes"
		}
		problems.Add(markdown.Code(row.Reason), markdown.Cell(row.Meaning), markdown.Cell(withLink(row.Remedy, row.See)), actionRequired)
	}
	fmt.Fprintf(&b, "\n## <a id=\"problems-of-a-tunnel\"></a>%s\n\n%s\n\n%s", problemsHeading, markdown.Wrap(c.Problems.Intro), problems)
	events := markdown.NewTable("Type", "Reason", "Object", "Meaning", "What to do")
	for _, row := range c.Events.Rows {
		events.Add(row.Type, markdown.Code(row.Reason), row.Object, markdown.Cell(row.Meaning), markdown.Cell(withLink(row.Remedy, row.See)))
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", eventsHeading, markdown.Wrap(c.Events.Intro), events)
	return b.String()
}

// reasonIndex returns a table that leads from each reason to the headings that
// describe it.
func (c *catalogue) reasonIndex() *markdown.Table {
	links := map[string][]string{}
	add := func(reason, heading string) {
		if l := markdown.Link(heading); !slices.Contains(links[reason], l) {
			links[reason] = append(links[reason], l)
		}
	}
	for _, k := range c.Kinds {
		for _, condition := range k.Conditions {
			for _, r := range condition.Reasons {
				add(r.Reason, k.heading(condition.Type))
			}
		}
	}
	for _, row := range c.Problems.Rows {
		add(row.Reason, problemsHeading)
	}
	for _, row := range c.Events.Rows {
		add(row.Reason, eventsHeading)
	}
	index := markdown.NewTable("Reason", "Described under")
	for _, reason := range slices.Sorted(maps.Keys(links)) {
		index.Add(markdown.Code(reason), strings.Join(links[reason], ", "))
	}
	return index
}

func (k *kindEntry) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", k.Title, markdown.Wrap(k.Intro))
	for i := range k.Conditions {
		k.Conditions[i].write(b, k.heading(k.Conditions[i].Type))
	}
}

func (c *conditionEntry) write(b *strings.Builder, heading string) {
	fmt.Fprintf(b, "\n### %s\n\n", heading)
	if strings.Contains(c.Type, "/") {
		fmt.Fprintf(b, "%s\n\n", markdown.Code(c.Type))
	}
	t := markdown.NewTable("Status", "Reason", "Meaning", "What to do")
	for _, r := range c.Reasons {
		meaning := r.Meaning
		if r.SetBy != "" {
			meaning += " " + r.SetBy + " sets this reason."
		}
		t.Add(r.Status, markdown.Code(r.Reason), markdown.Cell(meaning), markdown.Cell(r.Remedy))
	}
	if c.Problems != "" {
		t.Add("False", "any problem", markdown.Cell(c.Problems), "See "+markdown.Link(problemsHeading)+".")
	}
	fmt.Fprintf(b, "%s\n\n%s", markdown.Wrap(c.About), t)
}

// heading returns a condition's heading: its type without the domain.
func (k *kindEntry) heading(conditionType string) string {
	return k.Short + " " + short(conditionType)
}

// withLink appends a link to a text.
func withLink(text, link string) string {
	if link == "" {
		return text
	}
	return text + " See " + link + "."
}
