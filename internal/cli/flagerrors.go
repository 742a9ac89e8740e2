package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

// flagErrors collects the errors in a command's flags.
type flagErrors []error

// flagValue is a flag and its value.
type flagValue struct{ flag, value string }

// add adds an error about a flag, unless it is nil.
func (e *flagErrors) add(flag string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("--%s %w", flag, err))
	}
}

// requireValues adds an error for each flag that is set to the empty value, which is probably
// the value of a variable that is not set. isSet reports whether a flag is set on the command
// line.
func (e *flagErrors) requireValues(isSet func(flag string) bool, flags ...flagValue) {
	for _, f := range flags {
		if isSet(f.flag) && f.value == "" {
			e.add(f.flag, errEmptyValue)
		}
	}
}

// checkNamespace checks --namespace, unless it is empty.
func (e *flagErrors) checkNamespace(namespace string) {
	if namespace != "" {
		e.add("namespace", config.CheckNamespace(namespace))
	}
}

// checkGateway checks --gateway, unless it is empty.
func (e *flagErrors) checkGateway(gateway string) {
	namespace, name, _ := strings.Cut(gateway, "/")
	if gateway != "" && (namespace == "" || name == "" || strings.Contains(name, "/")) {
		e.add("gateway", fmt.Errorf("must be of the form namespace/name, got %q", gateway))
	}
}

// requireOneOf adds an error unless the values contain the flag's value.
func (e *flagErrors) requireOneOf(flag, value string, values []string) {
	if !slices.Contains(values, value) {
		e.add(flag, fmt.Errorf("must be one of %s, got %q", strings.Join(values, ", "), value))
	}
}

// rejectColor adds an error if --color is set although the output is JSON.
func (e *flagErrors) rejectColor(output string, isSet func(flag string) bool) {
	if output == "json" && isSet("color") {
		e.add("color", errors.New("has no effect with --output json"))
	}
}

// addEnvironment adds the names of environment variables to the flags' descriptions.
func addEnvironment(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) { flag.Usage += " [" + config.EnvName(flag.Name) + "]" })
}
