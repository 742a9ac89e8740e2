package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The headings that the index links to.
const (
	problemsTitle = "Problems of a tunnel"
	eventsTitle   = "Events"
)

// page is what follows the head.
func (t *texts) page() string {
	var b strings.Builder
	b.WriteString(t.index())
	for i := range t.Kinds {
		t.Kinds[i].write(&b)
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Reason | Means | Do | Needs a person |\n|---|---|---|---|\n", problemsTitle, wrap(t.Problems.Intro))
	for _, row := range t.Problems.Rows {
		needs := "no"
		if row.NeedsPerson {
			needs = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", row.Reason, cell(row.Means), cell(row.Do), needs)
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Type | Reason | On | Means | Do |\n|---|---|---|---|---|\n", eventsTitle, wrap(t.Events.Intro))
	for _, row := range t.Events.Rows {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", row.Type, row.Reason, row.On, cell(row.Means), cell(row.Do))
	}
	return b.String()
}

// index leads from a reason to the conditions that have it.
func (t *texts) index() string {
	places := map[string][]string{}
	for _, k := range t.Kinds {
		for _, c := range k.Conditions {
			for _, r := range c.Reasons {
				place := link(k.heading(c))
				if !slices.Contains(places[r.Reason], place) {
					places[r.Reason] = append(places[r.Reason], place)
				}
			}
		}
	}
	for _, row := range t.Problems.Rows {
		places[row.Reason] = append(places[row.Reason], link(problemsTitle))
	}
	for _, row := range t.Events.Rows {
		if place := link(eventsTitle); !slices.Contains(places[row.Reason], place) {
			places[row.Reason] = append(places[row.Reason], place)
		}
	}
	var b strings.Builder
	b.WriteString("\n## By reason\n\n| Reason | Where |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(places)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.Join(places[name], ", "))
	}
	return b.String()
}

func (k *kind) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", k.Title, wrap(k.Intro))
	for _, c := range k.Conditions {
		fmt.Fprintf(b, "\n### %s\n\n", k.heading(c))
		if strings.Contains(c.Type, "/") {
			fmt.Fprintf(b, "`%s`\n\n", c.Type)
		}
		fmt.Fprintf(b, "%s\n\n| Status | Reason | Means | Do |\n|---|---|---|---|\n", wrap(c.About))
		for _, r := range c.Reasons {
			means := r.Means
			if r.Default != "" {
				means += " Set by " + r.Default + "."
			}
			fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", r.Status, r.Reason, cell(means), cell(r.Do))
		}
		if c.Problems != "" {
			fmt.Fprintf(b, "| False | a problem | %s | See %s. |\n", cell(c.Problems), link(problemsTitle))
		}
	}
}

// heading is that of a condition, without the domain of its type.
func (k *kind) heading(c condition) string {
	return k.Short + " " + c.Type[strings.LastIndex(c.Type, "/")+1:]
}

// link leads to a heading of the page. Its anchor is made as GitHub does.
func link(heading string) string {
	return fmt.Sprintf("[%s](#%s)", heading, anchor(heading))
}

func anchor(heading string) string { return strings.ReplaceAll(strings.ToLower(heading), " ", "-") }

// cell is a text on one line of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// width is that of the lines of a page.
const width = 120

// wrap breaks a text into lines, each of its paragraphs for itself.
func wrap(text string) string {
	var paragraphs []string
	for _, paragraph := range strings.Split(text, "\n") {
		paragraphs = append(paragraphs, wrapOne(paragraph))
	}
	return strings.Join(paragraphs, "\n\n")
}

func wrapOne(text string) string {
	var lines []string
	current := ""
	for _, word := range strings.Fields(text) {
		if current != "" && len(current)+1+len(word) > width {
			lines, current = append(lines, current), ""
		}
		current = strings.TrimSpace(current + " " + word)
	}
	return strings.Join(append(lines, current), "\n")
}
