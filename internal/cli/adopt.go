package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/adoption"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

// adoptOptions are the flags for dns adopt.
type adoptOptions struct {
	leadingHere         bool
	gateway             string
	dryRun              bool
	yes                 bool
	timeout             time.Duration
	output              string
	color               colorMode
	kubeconfig          string
	context             string
	controller          string
	controllerNamespace string
	clusterID           string
	cloudflare          config.Cloudflare
	group               config.Group
	// needs says which permissions the user's API token needs.
	needs string
}

const dnsHelp = `Adopts DNS records for the hostnames that Gateways serve. The field spec.dns in a
GatewayClass's TunnelConfiguration lists the zones in which the controller manages records.`

const adoptHelp = `Asks the controller to manage DNS records that it did not create: records made by hand,
by cloudflared or by external-dns, records that lead to a former load balancer, and
records whose mark is no longer valid, for example after the signing key was lost.

A record can be adopted if a Gateway uses its name, and dns.mode of the GatewayClass is
Manage. The command shows the record of each name:

  mark     The record leads to the Gateway's tunnel. The controller adds its mark, and
           requests are not affected.
  replace  The controller replaces the record with one that leads to the Gateway's tunnel.
           If the record leads elsewhere, the hostname's requests move, and the command
           asks first.

dns adopt reads the records with your API token, not with the controller's token. Then it
annotates the Gateway's Tunnel, waits for the controller, and prints the results. The
result for an adopted record contains the command that restores the record. The controller
refuses to adopt a record that has changed since the command showed it. If one of the
records cannot be adopted, the command requests nothing.

--leading-here selects all records without a valid mark that lead to a Gateway that uses
their names. If a flag's description ends with a name in brackets, the environment
variable with this name also sets the flag.

Exit status:
  0    the records were adopted, or there are none; with --dry-run, all can be adopted
  1    an error occurred, a record cannot be adopted, the controller refused one, or
       --timeout has passed
  130  Ctrl-C ended the command`

var adoptFormats = []string{"table", "json"}

// dnsCommand returns the command dns with its commands. program is the program name in the
// examples.
func dnsCommand(program string) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "dns",
		Short:             "Adopt DNS records",
		Long:              dnsHelp,
		Args:              onlyCommands,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(adoptCommand(program))
	return cmd
}

// adoptCommand returns the command dns adopt.
func adoptCommand(program string) *cobra.Command {
	var o adoptOptions
	cmd := &cobra.Command{
		Use:   "adopt (NAME... | --leading-here)",
		Short: "Let the controller manage existing DNS records",
		Long:  adoptHelp,
		Example: strings.ReplaceAll(`  PROGRAM dns adopt www.example.com shop.example.com --dry-run
  PROGRAM dns adopt www.example.com --gateway platform/shared
  PROGRAM dns adopt --leading-here --gateway platform/shared
  PROGRAM dns adopt '*.example.com' --yes -o json`, "PROGRAM", program),
		ValidArgsFunction: o.completeNames,
		RunE:              o.run,
	}
	o.addFlags(cmd.Flags())
	o.registerCompletions(cmd)
	return cmd
}

func (o *adoptOptions) registerCompletions(cmd *cobra.Command) {
	registerCompletion(cmd, "output", cobra.FixedCompletions(adoptFormats, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "color", cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return contextNames(o.kubeconfig)
	})
	registerCompletion(cmd, "gateway", o.completeGateways)
}

func (o *adoptOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.leadingHere, "leading-here", false, "adopt all records without a valid mark that lead to a Gateway that uses their names")
	f.StringVar(&o.gateway, "gateway", "", "Gateway `namespace/name` that must use the names; required for a name that several Gateways use")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show the records and what the controller would do")
	f.BoolVarP(&o.yes, "yes", "y", false, "replace records that lead elsewhere without asking")
	f.DurationVar(&o.timeout, "timeout", defaultTimeout, "maximum `duration` to wait for the results of each 500 records, such as 90s or 10m")
	o.addCommonFlags(f, "permissions "+adoption.Permissions+" for the zones")
}

// addCommonFlags adds the flags that the commands to adopt records and applications share.
// needs says which permissions the user's API token needs.
func (o *adoptOptions) addCommonFlags(f *pflag.FlagSet, needs string) {
	f.StringVarP(&o.output, "output", "o", "table", "output `format`: "+strings.Join(adoptFormats, " or "))
	f.StringVar((*string)(&o.color), "color", "auto", colorUsage)
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	f.StringVar(&o.context, "context", "", contextUsage)
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, controllerNameUsage)
	f.StringVar(&o.controllerNamespace, "controller-namespace", config.DefaultControllerNamespace, controllerNamespaceUsage)
	f.StringVar(&o.clusterID, "cluster-id", "", "`ID` of the controller's installation, in the comments of its records and the tags of its applications (default the ID in its Tunnels)")
	o.needs, o.group = needs, o.cloudflare.OwnTokenFlags(needs)
	addEnvironment(o.group.Flags)
	f.AddFlagSet(o.group.Flags)
}

// check returns all errors in the arguments and flags, and reads the environment.
func (o *adoptOptions) check(cmd *cobra.Command, names []string) error {
	return errors.Join(o.checkNames(cmd, names), o.checkFlags(cmd.Flags().Changed), o.checkToken())
}

func (o *adoptOptions) checkNames(cmd *cobra.Command, names []string) error {
	switch {
	case len(names) == 0 && !o.leadingHere:
		return withHelp(cmd, errors.New("adopt requires the names of records, or --leading-here"), "")
	case len(names) > 0 && o.leadingHere:
		return withHelp(cmd, errors.New("--leading-here must not be set together with names"), "")
	case slices.Contains(names, ""):
		return errors.New("NAME must not be empty")
	}
	return nil
}

func (o *adoptOptions) checkFlags(isSet func(flag string) bool) error {
	var errs flagErrors
	errs.add("controller-name", config.CheckControllerName(o.controller))
	errs.add("controller-namespace", config.CheckNamespace(o.controllerNamespace))
	errs.add("cluster-id", config.CheckClusterID(o.clusterID))
	errs.add("color", o.color.check())
	errs.requireValues(isSet, flagValue{"cluster-id", o.clusterID}, flagValue{"context", o.context}, flagValue{"kubeconfig", o.kubeconfig}, flagValue{"gateway", o.gateway})
	errs.checkGateway(o.gateway)
	errs.requireOneOf("output", o.output, adoptFormats)
	if o.timeout <= 0 {
		errs.add("timeout", fmt.Errorf("must be greater than 0, got %s", o.timeout))
	}
	return errors.Join(append(errs, o.checkCombination(isSet))...)
}

// checkCombination returns an error for each flag that has no effect together with the
// others.
func (o *adoptOptions) checkCombination(isSet func(flag string) bool) error {
	var errs flagErrors
	for _, flag := range []string{"yes", "timeout"} {
		if o.dryRun && isSet(flag) {
			errs = append(errs, fmt.Errorf("--%s has no effect with --dry-run", flag))
		}
	}
	errs.rejectColor(o.output, isSet)
	if o.leadingHere && isSet("yes") {
		errs = append(errs, errors.New("--yes has no effect with --leading-here, which moves no requests"))
	}
	return errors.Join(errs...)
}

// checkToken reads the API token from the environment.
func (o *adoptOptions) checkToken() error {
	if err := errors.Join(config.FromEnvironment([]config.Group{o.group}, os.LookupEnv), o.cloudflare.CheckFormat()); err != nil {
		return err
	}
	if o.cloudflare.APIToken == "" {
		return fmt.Errorf("no API token: set %s to your own token with the %s; the controller's token is not used",
			config.EnvName("cloudflare-api-token"), o.needs)
	}
	return nil
}

// gatewayName returns the name in --gateway.
func (o *adoptOptions) gatewayName() types.NamespacedName {
	namespace, name, _ := strings.Cut(o.gateway, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// completeGateways completes --gateway.
func (o *adoptOptions) completeGateways(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	other := operationOptions{kubeconfig: o.kubeconfig, context: o.context, controller: o.controller, controllerNamespace: o.controllerNamespace}
	return other.completeGateway(cmd, nil, "")
}

// completeNames completes the hostnames whose records the controller manages.
func (o *adoptOptions) completeNames(cmd *cobra.Command, names []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	live, err := o.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	gateways, err := o.gateways(ctx, live, func(string) func() { return func() {} })
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	wanted, _ := adoption.SelectAll(gateways) // no hostnames after an error
	var values []cobra.Completion
	for _, w := range wanted {
		if !slices.Contains(names, w.Name) && !slices.Contains(values, w.Name) {
			values = append(values, w.Name)
		}
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}
