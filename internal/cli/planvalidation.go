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

var errEmptyValue = errors.New("is empty")

// noArguments refuses arguments, which are most often manifests.
func noArguments(_ *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("plan takes no arguments, such as %q; manifests are named with -f", arguments[0])
	}
	return nil
}

// explainUnknownFlag says what there is in the place of the flags that everybody knows
// from kubectl.
func explainUnknownFlag(_ *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && slices.Contains([]string{"n", "A", "all-namespaces"}, unknown.GetSpecifiedName()) {
		return fmt.Errorf("%w; all namespaces are read, see --gateway", err)
	}
	return err
}

// validate returns all that is wrong with the flags, by name; given is whether
// one was.
func (o *planOptions) validate(given func(flag string) bool) error {
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
	check("why", o.checkWhy(given("why")))
	if slices.Contains(o.paths, "") {
		check("filename", errEmptyValue)
	}
	switch {
	case o.namespace == "":
	case len(o.paths) == 0:
		check("namespace", errors.New("is for the manifests of --filename, of which there are none; all namespaces of the cluster are read"))
	default:
		check("namespace", config.CheckNamespace(o.namespace))
	}
	if namespace, name, ok := strings.Cut(o.gateway, "/"); o.gateway != "" && (!ok || namespace == "" || name == "") {
		check("gateway", fmt.Errorf("%q is not of the form namespace/name", o.gateway))
	}
	return errors.Join(errs...)
}

func (o *planOptions) checkWhy(given bool) error {
	switch {
	case given && o.why == "":
		return errEmptyValue
	case given && o.diff.enabled:
		return errors.New("and --diff cannot be given together")
	}
	return nil
}
