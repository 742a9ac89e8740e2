package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

type planOptions struct {
	sourceOptions
	gateway   string
	output    string
	why       string
	dataPlane string
	method    string
	headers   []string
	strict    bool
	color     colorMode
	wide      bool
	diff      diffOptions
}

const planHelp = `Shows what the controller would do: the effective hostname table of each Gateway,
the ingress rules of its tunnel, and the status of every object after a
successful push. plan changes neither the cluster nor Cloudflare. If the settings
ask for another data plane, plan also shows the routes whose status changes with it.

  plan                         uses the objects of a cluster
  plan -f FILE                 uses manifests and reads no cluster
  plan -f FILE --context NAME  uses the objects of a cluster as if the manifests
                               were applied; so does --kubeconfig

Without --context and --kubeconfig, plan uses the same cluster as kubectl. It skips
and counts manifests of kinds that the controller does not read. If plan reads no
cluster and the manifests contain no GatewayClass, plan assumes that the GatewayClass
` + config.DefaultClassName + ` belongs to the controller.

With -o envoy, plan prints a configuration for "envoy -c FILE". With -o envoy-routes, it
prints the resources that the Envoys beside the connectors get from the controller. Both
formats require a Gateway with the data plane Envoy.

With --data-plane, plan shows a what-if: every Gateway after a change to this data
plane, and the routes whose status differs from the one without the flag.

With --diff, plan compares each configuration with the configuration that the
tunnel has at Cloudflare. It only reads: an API token with the permission
Cloudflare Tunnel: Read is sufficient. If the GatewayClass sets dns.mode, plan also
compares the hostnames with the DNS zones, which requires Zone: Read and DNS: Read, and
a cluster. If the GatewayClass manages applications of Cloudflare Access, plan also reads
them, which requires Access: Apps and Policies Read, and a cluster. If a flag's description ends with a name in
brackets, the environment variable with this name also sets the flag.

Exit status:
  0  success
  1  an error occurred, or a manifest is not valid
  2  --strict: a condition does not have its expected status, a Gateway has a
     warning, a Gateway's data plane cannot change as the settings require,
     another listener claims a route's hostname, a parent of a route or
     ListenerSet does not exist, an object or a manifest has a mistake, or no route
     answers the --why request; with --diff also: a hostname has a conflicting DNS
     record, no zone or no edge certificate
  3  --diff: a push would change a tunnel, the controller would change DNS records
     or applications, or the manifests change Envoy routes
  130  Ctrl-C ended the command`

// planCommand returns the command plan. program is the program name in the examples.
func planCommand(program string) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what the controller would do with a cluster, with manifests, or with both",
		Long:  planHelp,
		Example: strings.ReplaceAll(`  PROGRAM plan
  PROGRAM plan --context production --gateway platform/shared
  PROGRAM plan -f gateway.yaml -f teams/
  PROGRAM plan -f teams/ --context production
  PROGRAM plan -f teams/ --context production --diff
  PROGRAM plan --why shop.example.com/cart
  PROGRAM plan --gateway platform/shared --data-plane Envoy
  PROGRAM plan -f gateway.yaml --gateway platform/shared -o envoy >envoy.json
  PROGRAM plan --why shop.example.com/cart --method POST --header x-version:2
  kustomize build . | PROGRAM plan -f - --strict`, "PROGRAM", program),
		Args:              noManifests,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags())
	registerCompletion(cmd, "color", cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "data-plane", cobra.FixedCompletions(dataPlanes, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "output", cobra.FixedCompletions(planFormats, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "context", o.completeContexts)
	registerCompletion(cmd, "gateway", o.completeGateways)
	cmd.SetFlagErrorFunc(explainPlanFlagError)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // fails only for a flag that does not exist
	return cmd
}

func (o *planOptions) addFlags(f *pflag.FlagSet) {
	o.sourceOptions.addFlags(f)
	f.StringVar(&o.gateway, "gateway", "", "show only the Gateway `namespace/name`")
	f.StringVarP(&o.output, "output", "o", "table", "output `format`: "+strings.Join(planFormats, ", "))
	f.StringVar(&o.why, "why", "", "explain what answers a `request` HOST[/PATH][?QUERY], and why, instead of printing the plan")
	f.StringVar(&o.dataPlane, "data-plane", "", "show a what-if in which every Gateway has the data plane `name`: "+strings.Join(dataPlanes, " or "))
	f.StringVar(&o.method, "method", "", "`method` of the request of --why (default GET)")
	f.StringArrayVar(&o.headers, "header", nil, "header of the request of --why, as `NAME:VALUE`; may be repeated")
	f.BoolVar(&o.strict, "strict", false, "exit with status 2 if plan finds a problem")
	f.StringVar((*string)(&o.color), "color", "auto", colorUsage)
	f.BoolVar(&o.wide, "wide", false, "print the complete rows of tables and complete lists of names; by default, plan truncates rows to the width of the terminal, and lists to a few names")
	o.diff.addFlags(f)
}

// run executes the command.
func (o *planOptions) run(cmd *cobra.Command) error {
	err := o.execute(cmd)
	if err != nil && cmd.Context().Err() != nil {
		return errInterrupted
	}
	return err
}

// execute builds and prints the plan.
func (o *planOptions) execute(cmd *cobra.Command) error {
	write, err := o.printer(cmd.OutOrStdout())
	if err := errors.Join(err, o.validate(cmd.Flags().Changed), o.checkCombination(cmd.Flags().Changed), o.diff.load()); err != nil {
		return err
	}
	// The process is short-lived, so fewer garbage collections are worth the memory.
	debug.SetGCPercent(200)
	line := progress.New(streamOf(cmd.ErrOrStderr()))
	source, err := o.readSource(cmd, line)
	if err != nil {
		return err
	}
	result, err := o.buildPlan(cmd.Context(), source, line)
	if err == nil && o.diff.enabled && o.diff.readApplications(cmd.Context(), result, source, line) {
		result, err = o.buildPlan(cmd.Context(), source, line) // with the applications
	}
	if err != nil {
		return err
	}
	if err := o.complete(cmd.Context(), result, source); err != nil {
		return err
	}
	var compareErr error
	if o.diff.enabled {
		compareErr = o.diff.compare(cmd.Context(), result, source, line)
		if err := o.compareTables(cmd.Context(), result, source, line); err != nil {
			return err
		}
	}
	healthy, err := o.print(cmd, write, result, source)
	if err != nil {
		return err
	}
	return o.exitError(result, healthy, compareErr)
}

// print prints the plan with write, and the warnings. It reports whether plan found no problem.
func (o *planOptions) print(cmd *cobra.Command, write printFunc, result *plan.Plan, source *state.Source) (healthy bool, err error) {
	// The buffer prevents partial output if an error occurs.
	var out bytes.Buffer
	if err := write(&out, result); err != nil {
		return false, fmt.Errorf("print the plan: %w", err)
	}
	judged := o.judged(result)
	warnSource(cmd.ErrOrStderr(), source)
	unserved := o.warnPlan(cmd.ErrOrStderr(), result, judged)
	if _, err := out.WriteTo(o.colored(cmd.OutOrStdout())); err != nil {
		return false, fmt.Errorf("print the plan: %w", err)
	}
	return judged.Healthy() && !unserved && len(source.Warnings) == 0, nil
}

// judged returns the part of the plan whose problems count: with --why, the part on which
// the answer depends.
func (o *planOptions) judged(result *plan.Plan) *plan.Plan {
	if o.why == "" {
		return result
	}
	request, _ := o.request() // printer has validated it
	return result.For(request)
}

// exitError returns the error that determines the exit status after the plan was
// printed. healthy reports whether plan found no problem.
func (o *planOptions) exitError(result *plan.Plan, healthy bool, compareErr error) error {
	switch {
	case compareErr != nil:
		return compareErr
	case o.strict && !healthy:
		return errUnexpectedCondition
	case result.HasChanges():
		return errChanges
	}
	return nil
}

// readSource reads the cluster and the manifests.
func (o *planOptions) readSource(cmd *cobra.Command, line *progress.Line) (*state.Source, error) {
	reader, err := o.open(cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	source, err := reader.read(cmd.Context(), line)
	if err != nil {
		return nil, err
	}
	return source, o.checkGaps(source)
}

// buildPlan builds the plan and applies --gateway.
func (o *planOptions) buildPlan(ctx context.Context, source *state.Source, line *progress.Line) (*plan.Plan, error) {
	defer line.Step("building the plan")()
	build := plan.Build
	if o.why != "" { // the routes matter, and not what a hostname waits for
		build = plan.BuildAssumingApplications
	}
	result, err := build(ctx, source, o.options(), time.Now())
	if err != nil || o.gateway == "" {
		return result, err
	}
	namespace, name, _ := strings.Cut(o.gateway, "/")
	return result, result.Select(types.NamespacedName{Namespace: namespace, Name: name})
}

// options returns the settings that the flags set.
func (o *planOptions) options() plan.Options {
	options := o.sourceOptions.options()
	options.DataPlane, options.Account, options.Applications = v1alpha1.DataPlane(o.dataPlane), o.diff.account(), o.diff.applications
	return options
}

// compareTables compares the routing tables that Envoy serves with the tables for the
// cluster without the manifests.
func (o *planOptions) compareTables(ctx context.Context, result *plan.Plan, source *state.Source, line *progress.Line) error {
	if !result.UsesEnvoy() {
		return nil
	}
	defer line.Step("building the plan without the manifests")()
	unchanged, err := source.WithoutManifests()
	if err != nil {
		return err
	}
	if unchanged == nil {
		result.NoteTablesNotCompared(source.Live)
		return nil
	}
	unchanged.Certificates.AssumeMissing = o.assumeSecrets
	before, err := plan.Build(ctx, unchanged, o.options(), time.Now())
	if err != nil {
		return err
	}
	result.CompareTables(before)
	return nil
}
