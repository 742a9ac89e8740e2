package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

var errEmptyValue = errors.New("must not be empty")

// noManifests rejects arguments, which are usually the names of manifests.
func noManifests(cmd *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("plan accepts no arguments, got %q; specify manifests with -f. See %s", arguments[0], helpOf(cmd))
	}
	return nil
}

// explainPlanFlagError explains an error about the flags of plan. It adds a hint about
// the namespace flags of kubectl, which plan does not have.
func explainPlanFlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && slices.Contains([]string{"n", "A", "all-namespaces"}, unknown.GetSpecifiedName()) {
		return fmt.Errorf("%w; plan always reads all namespaces, and --gateway selects one Gateway. See %s", err, helpOf(cmd))
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
	check("why", o.checkWhy(isSet("why")))
	check("method", o.checkRequestFlag(isSet("method")))
	check("header", o.checkRequestFlag(isSet("header")))
	if slices.Contains(o.paths, "") {
		check("filename", errEmptyValue)
	}
	switch {
	case o.namespace == "":
	case len(o.paths) == 0:
		check("namespace", errors.New("requires --filename: it sets the namespace of objects in manifests, and plan reads all namespaces of a cluster"))
	default:
		check("namespace", config.CheckNamespace(o.namespace))
	}
	if namespace, name, ok := strings.Cut(o.gateway, "/"); o.gateway != "" && (!ok || namespace == "" || name == "") {
		check("gateway", fmt.Errorf("must be of the form namespace/name, got %q", o.gateway))
	}
	return errors.Join(errs...)
}

// checkRequestFlag validates a flag that describes the request of --why. isSet
// reports whether it is set.
func (o *planOptions) checkRequestFlag(isSet bool) error {
	if isSet && o.why == "" {
		return errors.New("requires --why: it describes the request")
	}
	return nil
}

// checkWhy validates --why. isSet reports whether it is set.
func (o *planOptions) checkWhy(isSet bool) error {
	switch {
	case isSet && o.why == "":
		return errEmptyValue
	case isSet && o.diff.enabled:
		return errors.New("must not be set together with --diff")
	}
	return nil
}
