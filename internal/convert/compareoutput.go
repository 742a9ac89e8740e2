package convert

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// Style configures text output.
type Style struct {
	// Color prints problems in color.
	Color bool
	// Width truncates rows; 0 does not.
	Width int
}

// WriteTable writes the rules with what they became, and the requests with another answer.
func (c *Comparison) WriteTable(w io.Writer, s Style) error {
	columns := terminal.NewColumns(w, s.Color, s.Width)
	fmt.Fprintln(columns, "  #\tLINE\tHOSTNAME\tPATH\tSERVICE\tBECOMES"+terminal.RowMark)
	for _, r := range c.result.Rules {
		rule := r.Rule
		terminal.Printf(columns, "  %d\t%s\t%s\t%s\t%s\t%s"+terminal.MarkRow(r.Changed)+"\n", rule.Index, lineText(c.input.line(rule.Line)),
			cmp.Or(rule.Hostname, "*"), cmp.Or(rule.Path, "*"), redacted(rule.Service), cmp.Or(strings.Join(r.Targets, ", "), "-"))
	}
	fmt.Fprintln(columns)
	if shown := c.shown(); len(shown) > 0 {
		fmt.Fprintln(columns, "  #\tREQUEST\tBEFORE\tAFTER\tNOTED"+terminal.RowMark)
		for _, d := range shown {
			noted := map[bool]string{true: "yes", false: "no"}[d.Noted]
			terminal.Printf(columns, "  %d\t%s\t%s\t%s\t%s"+terminal.MarkRow(!d.Noted)+"\n", d.Rule, d.Request, d.Before, d.After, noted)
		}
	}
	for _, problem := range c.Problems {
		terminal.Printf(columns, "%s"+terminal.ProblemMark+"\n", problem.String())
	}
	terminal.Printf(columns, "%d of %d requests get another answer%s\n", len(c.Differences), c.Requests, c.hidden())
	return columns.Flush()
}

// examplesPerRule limits the noted differences in the output for each rule.
const examplesPerRule = 3

// shown returns the differences in the output: some for each rule, and all without a note.
func (c *Comparison) shown() []Difference {
	var shown []Difference
	byRule := map[int]int{}
	for _, d := range c.Differences {
		if d.Noted {
			byRule[d.Rule]++
		}
		if !d.Noted || byRule[d.Rule] <= examplesPerRule {
			shown = append(shown, d)
		}
	}
	return shown
}

func (c *Comparison) hidden() string {
	if len(c.shown()) == len(c.Differences) {
		return ""
	}
	return fmt.Sprintf("; the table has %d for each rule", examplesPerRule)
}

func lineText(line int) string {
	if line == 0 {
		return "-"
	}
	return fmt.Sprint(line)
}
