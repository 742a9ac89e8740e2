package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printResults prints a row for each step, and returns how many have failed.
func printResults(w io.Writer, results []result) (failed int) {
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "\nSTEP\tRESULT\tTIME\tDETAIL")
	for _, r := range results {
		took := ""
		if r.result != resultSkipped {
			took = r.took.Round(100 * time.Millisecond).String()
		}
		if r.result == resultFailed {
			failed++
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", r.step, r.result, took, strings.ReplaceAll(r.detail, "\n", "; "))
	}
	_ = out.Flush() // as for every other line, an error has no remedy
	return failed
}

// printDifferences prints a row for each difference from the simulator.
func printDifferences(w io.Writer, differences []difference) {
	if len(differences) == 0 {
		fmt.Fprintln(w, "\nNothing differs from the simulator.")
		return
	}
	out := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "\nDIFFERENCE\tONLY THE SIMULATOR\tGOT")
	for _, d := range differences {
		for i := range max(len(d.simulator), len(d.got)) {
			subject := ""
			if i == 0 {
				subject = d.subject
			}
			fmt.Fprintf(out, "%s\t%s\t%s\n", subject, at(d.simulator, i), at(d.got, i))
		}
	}
	_ = out.Flush() // as above
}

// at returns the value with the index, or an empty text.
func at(values []string, i int) string {
	if i < len(values) {
		return values[i]
	}
	return ""
}

// printRemoval prints what was removed and what is left.
func printRemoval(w io.Writer, prefix string, found, left remains, err error) {
	for _, name := range found.names() {
		fmt.Fprintln(w, "found", name)
	}
	if err != nil {
		fmt.Fprintln(w, "Failed to remove everything:", err)
	}
	if err == nil && left.isEmpty() {
		fmt.Fprintf(w, "Nothing of %s is left at Cloudflare.\n", prefix)
		return
	}
	for _, name := range left.names() {
		fmt.Fprintln(w, "LEFT", name)
	}
	fmt.Fprintf(w, "To try again: make e2e-cloudflare ARGS=-clean=%s\n", prefix)
}
