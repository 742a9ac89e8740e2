package adoption

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// WriteApplications prints a table of the applications, followed by the problems and notes.
// With color, rows with problems are colored. Rows are truncated to the width, unless it is 0.
func WriteApplications(w io.Writer, all []*Application, color bool, width int) error {
	out := terminal.NewColumns(w, color, width)
	fmt.Fprint(out, "HOSTNAME\tAPPLICATION\tID\tPOLICIES\tPOLICIES AFTERWARDS\tGATEWAY"+terminal.RowMark+"\n")
	for _, a := range all {
		terminal.Printf(out, "%s\t%s\t%s\t%s\t%s\t%s"+terminal.MarkRow(a.Problem != "")+"\n",
			a.Hostname, cmp.Or(a.Name, none), cmp.Or(string(a.ID), none), a.describePolicies(), strings.Join(a.WantedPolicies, ", "), a.Gateway)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, a := range all {
		if a.Problem != "" {
			terminal.Printf(w, "%s: %s.\n", a.Hostname, a.Problem)
		}
		for _, note := range a.Notes {
			terminal.Printf(w, "%s: %s\n", a.Hostname, note)
		}
	}
	return nil
}

// WriteApplicationResults prints a table of the results, followed by the messages. A message
// says how to undo an adoption, so it is never truncated.
func WriteApplicationResults(w io.Writer, all []*Application, color bool, width int) error {
	out := terminal.NewColumns(w, color, width)
	fmt.Fprint(out, "HOSTNAME\tRESULT\tGATEWAY"+terminal.RowMark+"\n")
	for _, a := range all {
		terminal.Printf(out, "%s\t%s\t%s"+terminal.MarkRow(a.Result != v1alpha1.RecordAdopted)+"\n",
			a.Hostname, cmp.Or(string(a.Result), "no result"), a.Gateway)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, a := range all {
		if a.Message != "" {
			terminal.Printf(w, "%s: %s\n", a.Hostname, a.Message)
		}
	}
	return nil
}

// FailedApplications returns how many of the applications were not adopted.
func FailedApplications(all []*Application) int {
	count := 0
	for _, a := range all {
		if a.Result != v1alpha1.RecordAdopted {
			count++
		}
	}
	return count
}
