package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
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
		return fmt.Errorf("plan accepts no arguments, got %q; specify manifests with -f. See %s", arguments[0], helpOf(cmd))
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
	var errs []error
	check := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s %w", flag, err))
		}
	}
	check("cluster-domain", config.CheckClusterDomain(o.clusterDomain))
	check("controller-name", config.CheckControllerName(o.controller))
	check("controller-namespace", config.CheckNamespace(o.controllerNamespace))
	check("cluster-id", config.CheckClusterID(o.clusterID))
	check("color", o.color.check())
	if o.dataPlane != "" {
		check("data-plane", checkDataPlane(o.dataPlane))
	}
	if slices.Contains(o.paths, "") {
		check("filename", errEmptyValue)
	}
	for _, f := range []struct{ flag, value string }{
		{"cluster-id", o.clusterID}, {"context", o.context}, {"data-plane", o.dataPlane}, {"gateway", o.gateway}, {"kubeconfig", o.kubeconfig},
		{"method", o.method}, {"namespace", o.namespace}, {"why", o.why},
	} {
		if isSet(f.flag) && f.value == "" {
			check(f.flag, errEmptyValue) // probably the value of a variable that is not set
		}
	}
	if o.namespace != "" {
		check("namespace", config.CheckNamespace(o.namespace))
	}
	if namespace, name, ok := strings.Cut(o.gateway, "/"); o.gateway != "" && (!ok || namespace == "" || name == "") {
		check("gateway", fmt.Errorf("must be of the form namespace/name, got %q", o.gateway))
	}
	return errors.Join(errs...)
}
