package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"
)

// checkCombination returns an error for each flag that has no effect together with the
// other flags. isSet reports whether a flag is set on the command line.
func (o *planOptions) checkCombination(isSet func(flag string) bool) error {
	var errs []error
	refuse := func(flag string, condition bool, reason string) {
		if condition && isSet(flag) {
			errs = append(errs, fmt.Errorf("--%s %s", flag, reason))
		}
	}
	const describesRequest = "requires --why: it describes the request"
	refuse("method", o.why == "", describesRequest)
	refuse("header", o.why == "", describesRequest)
	refuse("why", o.diff.enabled, "must not be set together with --diff")
	refuse("data-plane", o.diff.enabled, "must not be set together with --diff: it shows a what-if, and --diff compares with what the controller would write")
	refuse("output", o.printsEnvoy() && (o.why != "" || o.diff.enabled), o.output+" must not be set together with --why or --diff")
	refuse("recursive", !slices.ContainsFunc(o.paths, mayBeDirectory), "requires a directory in --filename")
	for _, flag := range []string{"color", "wide"} {
		refuse(flag, o.output != "table", "has no effect with --output "+o.output)
	}
	refuse("wide", o.diff.enabled && o.output == "table", "has no effect with --diff")
	o.diff.group.Flags.VisitAll(func(flag *pflag.Flag) { refuse(flag.Name, !o.diff.enabled, "requires --diff") })
	return errors.Join(errs...)
}

// mayBeDirectory reports whether a --filename path is a directory. A path that cannot be
// read results in another error.
func mayBeDirectory(path string) bool {
	info, err := os.Stat(path)
	return path != "-" && (err != nil || info.IsDir())
}
