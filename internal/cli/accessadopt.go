package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/adoption"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// accessAdoptOptions are the flags for access adopt.
type accessAdoptOptions struct{ adoptOptions }

const accessHelp = `Adopts applications of Cloudflare Access for the hostnames that Gateways protect. The
field spec.access in a GatewayClass's TunnelConfiguration lets the controller manage
applications.`

const accessAdoptHelp = `Asks the controller to manage applications of Cloudflare Access that it did not create:
applications made by hand, and applications whose tag is no longer valid, for example
after the signing key was lost or in a rebuilt cluster.

An application can be adopted if a Gateway demands an application for the same hostname or
wildcard, and if the application covers nothing else. The controller gives it the policies,
the session duration and the CORS settings of the demand, and keeps its AUD tag and its
other settings. If the policies change, the command asks first, because they decide who can
log in. If the demand is stricter than the application was, visitors log in again.

access adopt reads the applications with your API token, not with the controller's token.
Then it annotates the Gateway's Tunnel, waits for the controller, and prints the results.
The result for an adopted application says how to undo the adoption. If one of the
applications cannot be adopted, the command requests nothing.

Exit status:
  0  success
  1  an error occurred, or an application was not adopted
  130  Ctrl-C ended the command; requests without a result stay in effect for an hour`

// accessCommand returns the command access with its commands. program is the program name in
// the examples.
func accessCommand(program string) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "access",
		Short:             "Adopt applications of Cloudflare Access",
		Long:              accessHelp,
		Args:              onlyCommands,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.AddCommand(accessAdoptCommand(program))
	return cmd
}

// accessAdoptCommand returns the command access adopt.
func accessAdoptCommand(program string) *cobra.Command {
	var o accessAdoptOptions
	cmd := &cobra.Command{
		Use:   "adopt HOSTNAME...",
		Short: "Let the controller manage existing applications",
		Long:  accessAdoptHelp,
		Example: strings.ReplaceAll(`  PROGRAM access adopt www.example.com shop.example.com --dry-run
  PROGRAM access adopt '*.example.com' --gateway platform/shared
  PROGRAM access adopt www.example.com --yes -o json`, "PROGRAM", program),
		ValidArgsFunction: o.completeHostnames,
		RunE: func(cmd *cobra.Command, names []string) error {
			err := o.execute(cmd, names)
			if err != nil && cmd.Context().Err() != nil && !errors.Is(err, adoption.ErrStillRequested) {
				return errInterrupted
			}
			return err
		},
	}
	o.addFlags(cmd.Flags())
	o.registerCompletions(cmd)
	return cmd
}

func (o *accessAdoptOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.gateway, "gateway", "", "Gateway `namespace/name` that must demand the applications; required for a hostname that several Gateways protect")
	f.BoolVar(&o.dryRun, "dry-run", false, "only show the applications and what the controller would do")
	f.BoolVarP(&o.yes, "yes", "y", false, "replace the policies of applications without asking")
	f.DurationVar(&o.timeout, "timeout", defaultTimeout, "maximum `duration` to wait for the results of each 500 applications, such as 90s or 10m")
	o.addCommonFlags(f, "permission "+adoption.ApplicationPermission)
}

// execute shows the applications and lets the controller adopt them.
func (o *accessAdoptOptions) execute(cmd *cobra.Command, names []string) error {
	if err := errors.Join(o.checkHostnames(cmd, names), o.checkFlags(cmd.Flags().Changed), o.checkToken()); err != nil {
		return err
	}
	live, err := o.connect()
	if err != nil {
		return err
	}
	return o.executeOn(cmd, live, names)
}

func (o *accessAdoptOptions) checkHostnames(cmd *cobra.Command, names []string) error {
	switch {
	case len(names) == 0:
		return withHelp(cmd, errors.New("adopt requires the hostnames of applications"), "")
	case slices.Contains(names, ""):
		return errors.New("HOSTNAME must not be empty")
	}
	return nil
}

// executeOn executes the command in the cluster.
func (o *accessAdoptOptions) executeOn(cmd *cobra.Command, live client.WithWatch, names []string) error {
	line := progress.New(streamOf(cmd.ErrOrStderr()))
	all, err := o.examine(cmd.Context(), live, names, line)
	if err != nil {
		return err
	}
	problems, changing := len(adoption.ApplicationProblems(all)), adoption.ChangingPolicies(all)
	asks := !o.dryRun && !o.yes && len(changing) > 0
	if err := o.show(cmd, all, changing, asks, problems > 0); err != nil {
		return err
	}
	if problems > 0 {
		return fmt.Errorf("%d of %d applications cannot be adopted; the command has requested nothing", problems, len(all))
	}
	if o.dryRun {
		return nil
	}
	if asks {
		if err := confirm(cmd, changingPolicies(changing)); err != nil {
			return err
		}
	}
	return o.adopt(cmd, live, all, line)
}

// show prints the applications before the adoption. With --output json, only the results are
// printed; standard error then has the applications that the question is about.
func (o *accessAdoptOptions) show(cmd *cobra.Command, all, changing []*adoption.Application, asks, problems bool) error {
	switch {
	case o.output == "table" || o.dryRun || problems:
		return o.print(cmd.OutOrStdout(), all, adoption.WriteApplications)
	case asks:
		return adoption.WriteApplications(cmd.ErrOrStderr(), changing, false, 0)
	}
	return nil
}

// adopt lets the controller adopt the applications, and prints the results.
func (o *accessAdoptOptions) adopt(cmd *cobra.Command, live client.WithWatch, all []*adoption.Application, line *progress.Line) error {
	t := adoption.Target{
		Client: live, ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace,
		Timeout: o.timeout, Show: line.Step,
	}
	err := t.AdoptApplications(cmd.Context(), all)
	if printErr := o.print(cmd.OutOrStdout(), all, adoption.WriteApplicationResults); printErr != nil {
		return errors.Join(err, printErr)
	}
	if failed := adoption.FailedApplications(all); err == nil && failed > 0 {
		return fmt.Errorf("the controller has not adopted %d of %d applications", failed, len(all))
	}
	return err
}

// examine reads the applications for the hostnames.
func (o *accessAdoptOptions) examine(ctx context.Context, live client.Reader, names []string, line *progress.Line) ([]*adoption.Application, error) {
	gateways, err := o.accessGateways(ctx, live, line.Step)
	if err != nil {
		return nil, err
	}
	wanted, err := adoption.SelectApplications(gateways, names)
	if err != nil {
		return nil, err
	}
	defer line.Step("reading the applications at Cloudflare")()
	var client cloudflare.Client
	accounts := map[string][]provider.Application{}
	var all []*adoption.Application
	for _, w := range wanted {
		id := w.Gateway.AccountID
		if _, read := accounts[id]; !read {
			if accounts[id], err = o.readApplications(ctx, &client, id); err != nil {
				return nil, err
			}
		}
		all = append(all, adoption.ExamineApplication(accounts[id], w))
	}
	return all, nil
}

// readApplications lists the applications in an account.
func (o *accessAdoptOptions) readApplications(ctx context.Context, c *cloudflare.Client, account string) ([]provider.Application, error) {
	a, err := c.OpenAccess(cloudflare.Options{AccountID: account, APIToken: string(o.cloudflare.APIToken), BaseURL: o.cloudflare.BaseURL}, "")
	if err != nil {
		return nil, err
	}
	// The budget neither delays nor rejects the requests after it has granted the reservation.
	all, err := a.Applications(provider.WithReservation(provider.WithPriority(ctx, provider.PriorityAccess), reservedReads))
	if errors.Is(err, provider.ErrForbidden) || errors.Is(err, provider.ErrUnauthorized) {
		return nil, fmt.Errorf("account %s: %w; the API token needs the permission %s", account, err, adoption.ApplicationPermission)
	}
	return all, err
}

// accessGateways returns the controller's Gateways, as the controller decides about them.
func (o *accessAdoptOptions) accessGateways(ctx context.Context, live client.Reader, step func(string) func()) ([]adoption.AccessGateway, error) {
	built, err := o.buildPlan(ctx, live, step)
	if err != nil {
		return nil, err
	}
	var all []adoption.AccessGateway
	for _, g := range built.AccessGateways() {
		all = append(all, adoption.AccessGateway{Gateway: g.Gateway, Settings: g.Settings, AccountID: g.AccountID})
	}
	return all, nil
}

// print prints the applications in the format of --output.
func (o *accessAdoptOptions) print(stdout io.Writer, all []*adoption.Application, table func(io.Writer, []*adoption.Application, bool, int) error) error {
	if o.output == "json" {
		return writeJSON(stdout, struct {
			Applications []*adoption.Application `json:"applications"`
		}{append([]*adoption.Application{}, all...)})
	}
	return writeAdoption(stdout, o.color, all, table)
}

// completeHostnames completes the hostnames for which Gateways demand applications.
func (o *accessAdoptOptions) completeHostnames(cmd *cobra.Command, names []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	live, err := o.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	gateways, err := o.accessGateways(ctx, live, func(string) func() { return func() {} })
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var values []cobra.Completion
	for _, g := range gateways {
		for _, d := range g.Demands {
			if !slices.Contains(names, d.Hostname) && !slices.Contains(values, d.Hostname) {
				values = append(values, d.Hostname)
			}
		}
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}
