package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// warnSource prints which manifests and Secrets the plan does not consider.
func warnSource(w io.Writer, source *state.Source) {
	warnings, notes := sourceWarnings(source)
	for _, note := range notes {
		terminal.Printf(w, "%s\n", note)
	}
	for _, warning := range warnings {
		warn(w, "%s", warning)
	}
}

// sourceWarnings returns what a user should know about the input, and what was left out of it.
func sourceWarnings(source *state.Source) (warnings, notes []string) {
	for _, warning := range source.Warnings {
		warnings = append(warnings, warning.Error())
	}
	for _, skipped := range source.Skipped {
		notes = append(notes, fmt.Sprintf("skipped %d of kind %s", skipped.Count, skipped.GroupKind))
	}
	if len(source.SkippedDirectories) > 0 {
		notes = append(notes, fmt.Sprintf("skipped subdirectories: %s; --recursive reads them", strings.Join(source.SkippedDirectories, ", ")))
	}
	if gaps := source.DescribeGaps(); gaps != "" {
		warnings = append(warnings, gaps)
	}
	for _, secret := range source.Certificates.Forbidden() {
		warnings = append(warnings, fmt.Sprintf("no permission to get Secret %s, so its certificate is not validated", secret))
	}
	for _, secret := range source.Certificates.Assumed() {
		warnings = append(warnings, fmt.Sprintf("Secret %s not found; --assume-secrets treats it as a valid certificate", secret))
	}
	return warnings, notes
}

// warnPlan prints the remarks and problems that the table contains, but not the selected
// output. judged is the part of the plan whose problems count. It reports whether no route
// answers the request of --why.
func (o *planOptions) warnPlan(w io.Writer, result, judged *plan.Plan) (unserved bool) {
	if table := o.output == "table" && o.why == "" && !o.diff.enabled; !table {
		judged.WriteMistakes(w, "warning: ", plan.Style{Wide: o.wide})
	}
	if o.output != "table" && o.why == "" {
		for _, warning := range result.RouteWarnings(plan.Style{}) {
			warn(w, "%s", warning)
		}
	}
	if o.diff.enabled && o.output == "table" {
		result.WriteProblems(w)
	}
	if result.WhatIf != nil && o.printsEnvoy() {
		terminal.Printf(w, "%s\n", result.WhatIf)
	}
	result.WriteEnvoyWarnings(w, plan.Style{Wide: o.wide})
	result.WriteDNSWarnings(w)
	return o.warnUnserved(w, result)
}

// warnUnserved prints that no route answers the request of --why, and reports whether it did.
func (o *planOptions) warnUnserved(w io.Writer, result *plan.Plan) bool {
	if o.why == "" {
		return false
	}
	request, _ := o.request() // execute has validated it
	warning := result.Unserved(request)
	if warning != "" {
		warn(w, "%s", warning)
	}
	return warning != ""
}
