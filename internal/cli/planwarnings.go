package cli

import (
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// warnSource prints which manifests and Secrets the plan does not consider.
func warnSource(w io.Writer, source *state.Source) {
	for _, warning := range source.Warnings {
		warn(w, "%v", warning)
	}
	for _, skipped := range source.Skipped {
		terminal.Printf(w, "skipped %d of kind %s\n", skipped.Count, skipped.GroupKind)
	}
	if len(source.SkippedDirectories) > 0 {
		terminal.Printf(w, "skipped subdirectories: %s; --recursive reads them\n", strings.Join(source.SkippedDirectories, ", "))
	}
	if gaps := source.DescribeGaps(); gaps != "" {
		warn(w, "%s", gaps)
	}
	for _, secret := range source.Certificates.Forbidden() {
		warn(w, "no permission to get Secret %s, so its certificate is not validated", secret)
	}
	for _, secret := range source.Certificates.Assumed() {
		warn(w, "Secret %s not found; --assume-secrets treats it as a valid certificate", secret)
	}
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
