package adoption

import (
	"cmp"
	"fmt"
	"io"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// none fills an empty cell.
const none = "-"

// WriteCandidates prints a table of the records and of what the controller does with them,
// followed by the problems and notes. With color, rows with problems are colored. Rows are
// truncated to the width, unless it is 0.
func WriteCandidates(w io.Writer, all []*Candidate, color bool, width int) error {
	out := terminal.NewColumns(w, color, width)
	fmt.Fprint(out, "NAME\tTYPE\tCONTENT\tPROXIED\tLEADS\tACTION\tGATEWAY"+terminal.RowMark+"\n")
	for _, c := range all {
		r, proxied, leads := Record{Type: none, Content: none}, none, none
		if c.Record != nil {
			r, proxied, leads = *c.Record, yesOrNo(c.Record.Proxied), "elsewhere"
		}
		if c.LeadsHere {
			leads = "here"
		}
		terminal.Printf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s"+terminal.MarkRow(c.Action == "")+"\n",
			c.Name, r.Type, r.Content, proxied, leads, cmp.Or(string(c.Action), none), c.Gateway)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, c := range all {
		c.writeRemarks(w)
	}
	return nil
}

func yesOrNo(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}

// writeRemarks prints what an administrator must know before the adoption.
func (c *Candidate) writeRemarks(w io.Writer) {
	if c.Problem != "" {
		terminal.Printf(w, "%s: %s.\n", c.Name, c.Problem)
	}
	if r := c.Record; r != nil && r.Comment != "" {
		terminal.Printf(w, "%s: its comment is %q.\n", c.Name, r.Comment)
	}
	for _, note := range c.Notes {
		terminal.Printf(w, "%s: %s\n", c.Name, note)
	}
}

// WriteResults prints a table of the results, followed by the messages. A message contains
// the command that undoes an adoption, so it is never truncated.
func WriteResults(w io.Writer, all []*Candidate, color bool, width int) error {
	out := terminal.NewColumns(w, color, width)
	fmt.Fprint(out, "NAME\tZONE\tRESULT\tGATEWAY"+terminal.RowMark+"\n")
	for _, c := range all {
		terminal.Printf(out, "%s\t%s\t%s\t%s"+terminal.MarkRow(c.Result != v1alpha1.RecordAdopted)+"\n",
			c.Name, c.Zone, cmp.Or(string(c.Result), "no result"), c.Gateway)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, c := range all {
		if c.Message != "" {
			terminal.Printf(w, "%s: %s\n", c.Name, c.Message)
		}
	}
	return nil
}

// Failed returns how many of the candidates were not adopted.
func Failed(all []*Candidate) int {
	count := 0
	for _, c := range all {
		if c.Result != v1alpha1.RecordAdopted {
			count++
		}
	}
	return count
}
