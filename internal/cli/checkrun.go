package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// errCheckFailed results in exitUnexpectedCondition.
var errCheckFailed = errors.New("a step failed")

// surroundings are what check reads: the cluster, the pods in it, and the network.
type surroundings struct {
	live    client.Reader
	pods    client.Reader
	network probe.Network
}

// run executes the command.
func (o *checkOptions) run(cmd *cobra.Command, arguments []string) error {
	request, err := o.validate(arguments[0], cmd.Flags().Changed)
	if err != nil {
		return err
	}
	network, err := o.network()
	if err != nil {
		return err
	}
	s, err := o.connect()
	s.network = network
	if err == nil {
		err = o.execute(cmd, s, request)
	}
	if err != nil && cmd.Context().Err() != nil {
		return errInterrupted
	}
	return err
}

// connect returns clients for the cluster.
func (o *checkOptions) connect() (surroundings, error) {
	c, err := userConfig(clientConfig(o.kubeconfig, o.context))
	if err != nil {
		return surroundings{}, err
	}
	live, err := state.Connect(c)
	if err != nil {
		return surroundings{}, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	resource := corev1.SchemeGroupVersion.WithResource
	mapper.AddSpecific(corev1.SchemeGroupVersion.WithKind("Pod"), resource("pods"), resource("pod"), meta.RESTScopeNamespace)
	pods, err := client.New(c, client.Options{Scheme: manifest.Scheme(), Mapper: mapper})
	return surroundings{live: live, pods: pods}, err
}

// execute checks the request and prints the report.
func (o *checkOptions) execute(cmd *cobra.Command, s surroundings, r check.Request) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	line := progress.New(streamOf(cmd.ErrOrStderr()))
	checker, err := o.checker(ctx, s, line)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("reading the cluster took longer than --timeout %s: %w", o.timeout, err)
	}
	if err != nil {
		return err
	}
	report := checker.Run(ctx, r)
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	if err := o.print(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	return o.verdict(report)
}

// verdict returns the error that determines the exit status after the report was printed.
func (o *checkOptions) verdict(report *check.Report) error {
	if report.Result == check.Failed || o.strict && report.Result != check.OK {
		return errCheckFailed
	}
	return nil
}

// checker reads the cluster and decides about its Gateways.
func (o *checkOptions) checker(ctx context.Context, s surroundings, line *progress.Line) (*check.Checker, error) {
	source, err := o.readSource(ctx, s.live, line.Step)
	if err != nil {
		return nil, err
	}
	built, err := o.buildPlan(ctx, source, line)
	if err != nil {
		return nil, err
	}
	c := &check.Checker{
		Source: source, Plan: built, Pods: s.pods, ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace,
		Network: s.network, Progress: line.Step,
	}
	if o.cloudflare.APIToken != "" {
		var accounts cloudflare.Client
		c.Zones, err = accounts.OpenDNS(cloudflare.Options{APIToken: string(o.cloudflare.APIToken), BaseURL: o.cloudflare.BaseURL}, "")
	}
	return c, err
}

func (o *checkOptions) readSource(ctx context.Context, live client.Reader, step func(string) func()) (*state.Source, error) {
	// Many users have no permission to read CRDs. Listing the objects fails anyway if a CRD
	// is missing.
	crds, err := controller.CheckCRDs(ctx, live)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	cluster := state.Cluster{
		Live: live, ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace, Progress: step, PermitGaps: true,
	}
	cluster.Namespaces = []string{o.namespace}
	if o.namespace == "" {
		namespace, _, _ := clientConfig(o.kubeconfig, o.context).Namespace() // without one, no namespace is read
		cluster.Namespaces[0] = namespace
	}
	source, err := state.FromCluster(ctx, cluster, &manifest.Set{})
	if err != nil {
		return nil, err
	}
	source.ExperimentalRoutes = crds.ExperimentalRoutes
	return source, nil
}

// buildPlan decides about the Gateways, and applies --gateway.
func (o *checkOptions) buildPlan(ctx context.Context, source *state.Source, line *progress.Line) (*plan.Plan, error) {
	defer line.Step("deciding about the Gateways")()
	// The statuses say whether applications of Cloudflare Access exist.
	result, err := plan.BuildAssumingApplications(ctx, source, plan.Options{Options: gateway.Options{
		ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace, ClusterDomain: o.clusterDomain,
	}}, time.Now())
	if err != nil || o.gateway == "" {
		return result, err
	}
	namespace, name, _ := strings.Cut(o.gateway, "/")
	return result, result.Select(types.NamespacedName{Namespace: namespace, Name: name})
}

// print prints the report in the format of --output.
func (o *checkOptions) print(stdout io.Writer, report *check.Report) error {
	if o.output == "json" {
		text, err := encodeJSON(report)
		if err == nil {
			_, err = stdout.Write(text)
		}
		return err
	}
	style := check.Style{Color: o.color.enabled(stdout), Width: terminalWidth(stdout)}
	if style.Color {
		stdout = withColors(stdout)
	}
	return report.WriteTable(stdout, style)
}

// completeTargets completes the hostnames that Gateways serve.
func (o *checkOptions) completeTargets(cmd *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	s, err := o.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := o.checker(ctx, s, progress.New(io.Discard))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.Plan.Hostnames(), cobra.ShellCompDirectiveNoFileComp
}
