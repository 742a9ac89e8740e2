package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

var errEmptyValue = errors.New("must not be empty")

// checkDataPlane checks the value of --data-plane.
func checkDataPlane(value string) error {
	if slices.Contains(dataPlanes, value) {
		return nil
	}
	return errors.New(suggest.DidYouMean(fmt.Sprintf("must be %s, got %q", strings.Join(dataPlanes, " or "), value), suggest.Closest(value, dataPlanes)))
}

// noManifests rejects arguments, which are usually manifest names.
func noManifests(cmd *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("%s accepts no arguments, got %q; specify manifests with -f. See %s", cmd.Name(), arguments[0], helpOf(cmd))
	}
	return nil
}

// explainPlanFlagError explains an error about plan flags. It adds a hint about kubectl's
// namespace flags, which plan does not have.
func explainPlanFlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && slices.Contains([]string{"n", "A", "all-namespaces"}, unknown.GetSpecifiedName()) {
		return fmt.Errorf("%w; plan reads all namespaces, or the one in --namespace if you cannot read all, and --gateway selects one Gateway. See %s", err, helpOf(cmd))
	}
	return explainFlagError(cmd, err)
}

// validate returns all errors in the flags. isSet reports whether a flag is set on
// the command line.
func (o *planOptions) validate(isSet func(flag string) bool) error {
	var errs flagErrors
	o.check(&errs, isSet)
	errs.add("color", o.color.check())
	if o.dataPlane != "" {
		errs.add("data-plane", checkDataPlane(o.dataPlane))
	}
	errs.requireValues(isSet,
		flagValue{"data-plane", o.dataPlane}, flagValue{"gateway", o.gateway}, flagValue{"method", o.method}, flagValue{"why", o.why},
	)
	errs.checkGateway(o.gateway)
	return errors.Join(errs...)
}
