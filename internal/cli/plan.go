package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

type planOptions struct {
	paths               []string
	namespace           string
	kubeconfig          string
	context             string
	gateway             string
	output              string
	why                 string
	strict              bool
	clusterDomain       string
	controller          string
	controllerNamespace string // the controller's namespace
	clusterID           string
	diff                diffOptions
}

func planCommand(program string) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what the controller would do, with a cluster, with manifests, or with both",
		Long: `Shows the effective hostname table of each Gateway, the ingress rules of its
tunnel and the status of every object, as they are when the push succeeds.
Nothing is written anywhere.

  plan                         of what the cluster holds
  plan -f FILE                 of manifests; no cluster is read
  plan -f FILE --context NAME  of what the cluster would hold if the manifests
                               were applied; the same with --kubeconfig

The cluster is the one that kubectl would use. Of manifests, kinds that are not
read are skipped and counted, and of a directory its own files are read, not
those of its subdirectories. Without a cluster and without a GatewayClass among
the manifests, Gateways of the class ` + config.DefaultClassName + ` are planned.

With --diff, plan makes the decisions of the controller up to the first change
at Cloudflare, and compares the configurations with those that the tunnels have
now. A token with the permission Cloudflare Tunnel: Read is enough. A flag with a
variable in brackets can be set in the environment instead.

Exit status: 0; 1 when something cannot be read or compared, or a manifest is not
valid; 2 with --strict when a condition is not in its good state, or an object
gets no status because its Gateway does not exist; 3 with --diff when a push
would change a tunnel.`,
		Example: strings.ReplaceAll(`  PROGRAM plan
  PROGRAM plan --context production --gateway platform/shared
  PROGRAM plan -f gateway.yaml -f teams/
  PROGRAM plan -f teams/ --context production
  PROGRAM plan -f teams/ --context production --diff
  PROGRAM plan --why shop.example.com/cart
  kustomize build . | PROGRAM plan -f - --strict`, "PROGRAM", program),
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.paths, "filename", "f", nil, "`file` or directory of manifests, or - for standard input; may be repeated")
	f.StringVar(&o.namespace, "namespace", "", "`namespace` of objects in manifests that name none (default that of the context where a cluster is read, or else default)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server (default that of $KUBECONFIG, then ~/.kube/config, then the cluster that this runs in)")
	f.StringVar(&o.context, "context", "", "`name` of the context in the kubeconfig (default the current one)")
	f.StringVar(&o.gateway, "gateway", "", "show one Gateway only, by its `namespace/name`")
	f.StringVarP(&o.output, "output", "o", "table", "`format`: "+strings.Join(planFormats, ", "))
	f.StringVar(&o.why, "why", "", "show instead what becomes of a `request`, HOST[/PATH]: its listeners, its rule, and what that beats")
	f.BoolVar(&o.strict, "strict", false, "end with status 2 when a condition is not in its good state")
	f.StringVar(&o.clusterDomain, "cluster-domain", config.DefaultClusterDomain, "DNS `domain` of the cluster")
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, "`name` of the controller in GatewayClasses")
	f.StringVar(&o.controllerNamespace, "controller-namespace", config.DefaultControllerNamespace, "`namespace` of the controller and its Tunnels; an account that a GatewayClass refers to counts only there")
	f.StringVar(&o.clusterID, "cluster-id", "", "`ID` of the controller's installation, with which the names of its tunnels begin (default the ID in its Tunnels, or the controller's default)")
	o.diff.addFlags(f)
	registerCompletion(cmd, "color", cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "output", cobra.FixedCompletions(planFormats, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "context", o.completeContexts)
	registerCompletion(cmd, "gateway", o.completeGateways)
	cmd.SetFlagErrorFunc(explainUnknownFlag)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // fails only for a flag that does not exist
	return cmd
}

// errInterrupted is what a signal ends a plan with.
var errInterrupted = errors.New("interrupted")

// run makes the plan and prints it. Whatever fails after a signal failed by it.
func (o *planOptions) run(cmd *cobra.Command) error {
	err := o.execute(cmd)
	if err != nil && cmd.Context().Err() != nil {
		return errInterrupted
	}
	return err
}

func (o *planOptions) execute(cmd *cobra.Command) error {
	show, err := o.printer(cmd.OutOrStdout())
	if err := errors.Join(err, o.validate(cmd.Flags().Changed), o.diff.load()); err != nil {
		return err
	}
	// The program ends in a moment, and time is dearer to it than memory.
	debug.SetGCPercent(400)
	line := progress.New(cmd.ErrOrStderr())
	source, err := o.readSource(cmd, line)
	if err != nil {
		return err
	}
	made, err := o.buildPlan(cmd.Context(), source, line)
	if err != nil {
		return err
	}
	var unread error
	if o.diff.enabled {
		unread = o.diff.compare(cmd.Context(), made, source, line)
	}
	// Printed as a whole or not at all.
	var out bytes.Buffer
	if err := show(&out, made); err != nil {
		return fmt.Errorf("printing the plan: %w", err)
	}
	warnSource(cmd.ErrOrStderr(), source)
	o.warnPlan(cmd.ErrOrStderr(), made)
	if _, err := out.WriteTo(cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("printing the plan: %w", err)
	}
	return o.exitError(made, unread)
}

// exitError is what the exit status says of a plan that was printed.
func (o *planOptions) exitError(made *plan.Plan, unread error) error {
	switch {
	case unread != nil:
		return unread
	case o.strict && !made.Healthy():
		return errUnexpectedCondition
	case made.HasChanges():
		return errChanges
	}
	return nil
}

// readsCluster reports whether a cluster is read.
func (o *planOptions) readsCluster() bool {
	return len(o.paths) == 0 || o.kubeconfig != "" || o.context != ""
}

// readSource reads what there is to plan.
func (o *planOptions) readSource(cmd *cobra.Command, line *progress.Line) (*state.Source, error) {
	manifests := manifest.Options{Namespace: o.namespace, Stdin: cmd.InOrStdin()}
	if !o.readsCluster() {
		return readInterruptibly(cmd.Context(), line, func() (*state.Source, error) {
			return state.FromFiles(o.paths, manifests, gatewayv1.GatewayController(o.controller), config.DefaultClassName)
		})
	}
	cluster, err := o.cluster(line.Step)
	if errors.Is(err, errNoCluster) {
		return nil, fmt.Errorf("%w; or plan manifests alone, with --filename", err)
	}
	if err != nil {
		return nil, err
	}
	if o.namespace == "" {
		if manifests.Namespace, _, err = clientConfig(o.kubeconfig, o.context).Namespace(); err != nil {
			return nil, fmt.Errorf("reading the namespace of the context: %w", err)
		}
	}
	set, err := readInterruptibly(cmd.Context(), line, func() (*manifest.Set, error) { return manifest.Read(o.paths, manifests) })
	if err != nil {
		return nil, err
	}
	done := line.Step("looking which CRDs the cluster has")
	err = controller.CheckCRDs(cmd.Context(), cluster.Live)
	done()
	// Few people may look at CRDs. A kind that is missing shows all the same.
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return state.FromCluster(cmd.Context(), cluster, set)
}

// readInterruptibly returns what do makes of manifests, unless the context ends first. A
// read from a pipe cannot be broken off, so do is left behind then; the program
// ends.
func readInterruptibly[T any](ctx context.Context, line *progress.Line, do func() (T, error)) (T, error) {
	defer line.Step("reading the manifests")()
	type result struct {
		made T
		err  error
	}
	read := make(chan result, 1)
	go func() {
		made, err := do()
		read <- result{made, err}
	}()
	select {
	case r := <-read:
		return r.made, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// cluster returns the cluster of the flags.
func (o *planOptions) cluster(step func(string) func()) (state.Cluster, error) {
	c, err := restConfig(clientConfig(o.kubeconfig, o.context), 200, 400)
	if err != nil {
		return state.Cluster{}, err
	}
	c.WarningHandler = rest.NoWarnings{} // about versions of kinds: nothing that a user could change
	live, err := state.Connect(c)
	if err != nil {
		return state.Cluster{}, err
	}
	return state.Cluster{
		Live: live, ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace, Progress: step,
	}, nil
}

// buildPlan makes the plan, of one Gateway where the flags say so.
func (o *planOptions) buildPlan(ctx context.Context, source *state.Source, line *progress.Line) (*plan.Plan, error) {
	defer line.Step("building the plan")()
	options := plan.Options{
		Options: gateway.Options{
			ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace, ClusterDomain: o.clusterDomain,
		},
		ClusterID: o.clusterID, Account: o.diff.account(),
	}
	made, err := plan.Build(ctx, source, options, time.Now())
	if err != nil || o.gateway == "" {
		return made, err
	}
	namespace, name, _ := strings.Cut(o.gateway, "/")
	return made, made.Select(types.NamespacedName{Namespace: namespace, Name: name})
}

// warnSource says what the plan leaves open.
func warnSource(w io.Writer, source *state.Source) {
	for _, skipped := range source.Skipped {
		fmt.Fprintf(w, "skipped %d of kind %s\n", skipped.Count, skipped.GroupKind)
	}
	if len(source.Folders) > 0 {
		fmt.Fprintf(w, "skipped subdirectories: %s\n", strings.Join(source.Folders, ", "))
	}
	for _, secret := range source.Certificates.Forbidden() {
		fmt.Fprintf(w, "warning: the permission to get the Secret %s is missing, so its certificate is not checked\n", secret)
	}
}

// warnPlan says what the table of the plan says and another output does not.
func (o *planOptions) warnPlan(w io.Writer, made *plan.Plan) {
	table := o.output == "table" && o.why == "" && !o.diff.enabled
	if stray := made.Unattached(); stray != "" && !table {
		fmt.Fprintln(w, "warning: "+stray)
	}
	if o.diff.enabled && o.output == "table" {
		made.WriteProblems(w)
	}
}
