package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/internal/top"
)

// minInterval is how often Envoy updates its latencies. With a shorter interval, most rows
// would have none.
const minInterval = 5 * time.Second

type topOptions struct {
	by                  string
	namespace           string
	limit               int
	interval            time.Duration
	once                bool
	output              string
	color               colorMode
	kubeconfig          string
	context             string
	controller          string
	controllerNamespace string
}

const topHelp = `Shows how many requests the connectors forward each second, the share of errors, and
the median and 99th percentile of their duration, for all Gateways or for one. The
Gateways must have the data plane Envoy.

top reads each Envoy's metrics by port-forward to the connector's pod, with your
permissions, and shows the difference between two readings. On a terminal, it updates
one table. Elsewhere, it prints a new table each time.

An error is a response with a status of 500 or above, no response or an incomplete one, or
a gRPC status for a server error, such as Unavailable. Requests that visitors end are no
errors. The duration is that of the whole request at Envoy.

By default, Envoy counts only by Gateway. The setting connector.envoy.metrics of the
GatewayClass's TunnelConfiguration adds routes and backends. (other) contains requests
without a route or backend, and requests to rules above the setting's maxPairs.

Exit status:
  0    the measurement was printed, or Ctrl-C ended it afterwards
  1    an error occurred
  130  Ctrl-C ended the command before the first measurement`

var (
	topKinds   = []string{string(top.ByRoute), string(top.ByBackend), string(top.ByHostname), string(top.ByNamespace), string(top.ByGateway)}
	topFormats = []string{"table", "json"}
)

// topCommand returns the command top. program is the program name in the examples.
func topCommand(program string) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top [GATEWAY]",
		Short: "Show requests, errors and latencies by route or backend",
		Long:  topHelp,
		Example: strings.ReplaceAll(`  PROGRAM top
  PROGRAM top platform/shared --by backend
  PROGRAM top -n shop --by hostname
  PROGRAM top --interval 1m -o json`, "PROGRAM", program),
		Args:              atMostOneGateway,
		ValidArgsFunction: o.completeGateway,
		RunE:              func(cmd *cobra.Command, arguments []string) error { return o.run(cmd, arguments) },
	}
	o.addFlags(cmd.Flags())
	registerCompletion(cmd, "by", cobra.FixedCompletions(topKinds, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "output", cobra.FixedCompletions(topFormats, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "color", cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return contextNames(o.kubeconfig)
	})
	return cmd
}

func (o *topOptions) addFlags(f *pflag.FlagSet) {
	const defaultLimit = 20
	f.StringVar(&o.by, "by", string(top.ByRoute), "`kind` of the rows: "+strings.Join(topKinds, ", "))
	f.StringVarP(&o.namespace, "namespace", "n", "", "show only routes in this `namespace`")
	f.IntVar(&o.limit, "limit", defaultLimit, "maximum `number` of rows, busiest first; 0 shows all")
	f.DurationVar(&o.interval, "interval", minInterval, "`duration` between two readings, at least 5s")
	f.BoolVar(&o.once, "once", false, "measure once and exit")
	f.StringVarP(&o.output, "output", "o", "table", "output `format`: table or json; json measures once")
	f.StringVar((*string)(&o.color), "color", "auto", colorUsage)
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	f.StringVar(&o.context, "context", "", contextUsage)
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, controllerNameUsage+"; used only for completion")
	f.StringVar(&o.controllerNamespace, "controller-namespace", config.DefaultControllerNamespace, "`namespace` of the controller and of its connectors")
}

// atMostOneGateway rejects any arguments other than one Gateway.
func atMostOneGateway(cmd *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	return oneGateway(cmd, arguments)
}

// run executes the command.
func (o *topOptions) run(cmd *cobra.Command, arguments []string) error {
	gateway, argumentErr := topGateway(arguments)
	if err := errors.Join(argumentErr, o.validate(cmd.Flags().Changed)); err != nil {
		return err
	}
	c, err := userConfig(clientConfig(o.kubeconfig, o.context))
	if err != nil {
		return err
	}
	connectors, err := top.NewConnectors(c, o.controllerNamespace, gateway)
	if err != nil {
		return err
	}
	defer connectors.Close()
	return o.measure(cmd, connectors)
}

// topGateway returns the Gateway in the arguments, if any. --namespace selects routes, so
// the argument must contain the Gateway's namespace.
func topGateway(arguments []string) (types.NamespacedName, error) {
	if len(arguments) == 0 {
		return types.NamespacedName{}, nil
	}
	namespace, name, _ := strings.Cut(arguments[0], "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("GATEWAY must be of the form namespace/name, got %q", arguments[0])
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// validate returns all errors in the flags.
func (o *topOptions) validate(isSet func(flag string) bool) error {
	var errs flagErrors
	errs.requireOneOf("by", o.by, topKinds)
	errs.requireOneOf("output", o.output, topFormats)
	errs.add("color", o.color.check())
	errs.add("controller-name", config.CheckControllerName(o.controller))
	errs.add("controller-namespace", config.CheckNamespace(o.controllerNamespace))
	errs.requireValues(isSet, flagValue{"context", o.context}, flagValue{"kubeconfig", o.kubeconfig}, flagValue{"namespace", o.namespace})
	errs.checkNamespace(o.namespace)
	return errors.Join(append(errs, o.checkNumbers(), o.checkCombination(isSet))...)
}

func (o *topOptions) checkNumbers() error {
	var errs []error
	if o.limit < 0 {
		errs = append(errs, fmt.Errorf("--limit must be at least 0, got %d", o.limit))
	}
	if o.interval < minInterval {
		errs = append(errs, fmt.Errorf("--interval must be at least %s, got %s: Envoy updates its latencies every %[1]s", minInterval, o.interval))
	}
	return errors.Join(errs...)
}

// checkCombination returns an error for each flag that has no effect together with the
// others.
func (o *topOptions) checkCombination(isSet func(flag string) bool) error {
	var errs flagErrors
	errs.rejectColor(o.output, isSet)
	if o.by == string(top.ByGateway) && o.namespace != "" {
		errs = append(errs, errors.New("--namespace has no effect with --by gateway: it selects routes"))
	}
	return errors.Join(errs...)
}

// measure prints measurements until the context is canceled, or only one.
func (o *topOptions) measure(cmd *cobra.Command, connectors *top.Connectors) error {
	ctx := cmd.Context()
	show := o.printer(cmd.OutOrStdout())
	done := progress.New(streamOf(cmd.ErrOrStderr())).Step(fmt.Sprintf("measuring for %s", o.interval))
	before, after, err := o.readTwice(ctx, connectors)
	done()
	if err != nil {
		return err
	}
	compare := func(before, after top.Reading) *top.Measurement {
		return top.Compare(before, after, top.Options{By: top.By(o.by), Namespace: o.namespace})
	}
	measurement := compare(before, after)
	for {
		measurement.Limit(o.limit)
		if err := show(measurement); err != nil {
			return fmt.Errorf("print the measurement: %w", err)
		}
		if o.once || o.output == "json" {
			return nil
		}
		next, err := o.readLater(ctx, connectors)
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C
		case err != nil:
			// A rollout may be replacing the connectors.
			measurement = &top.Measurement{Time: time.Now(), By: top.By(o.by), Problems: []string{err.Error()}}
		default:
			measurement, after = compare(after, next), next
		}
	}
}

func (o *topOptions) readTwice(ctx context.Context, connectors *top.Connectors) (before, after top.Reading, err error) {
	if before, err = connectors.Read(ctx); err != nil {
		return before, after, err
	}
	after, err = o.readLater(ctx, connectors)
	return before, after, err
}

// readLater reads the metrics after the interval.
func (o *topOptions) readLater(ctx context.Context, connectors *top.Connectors) (top.Reading, error) {
	timer := time.NewTimer(o.interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return connectors.Read(ctx)
	case <-ctx.Done():
		return top.Reading{}, ctx.Err()
	}
}

// printer returns the function that prints a measurement.
func (o *topOptions) printer(stdout io.Writer) func(*top.Measurement) error {
	if o.output == "json" {
		return func(m *top.Measurement) error {
			text, err := encodeJSON(m)
			if err == nil {
				_, err = stdout.Write(text)
			}
			return err
		}
	}
	color := o.color.enabled(stdout)
	if file := fileOf(stdout); file != nil && !o.once && terminalWidth(stdout) > 0 {
		screen := terminal.NewScreen(file)
		return func(m *top.Measurement) error { return o.draw(screen, int(file.Fd()), m, color) }
	}
	if color {
		stdout = withColors(stdout)
	}
	return func(m *top.Measurement) error {
		var text bytes.Buffer
		if err := m.WriteTable(&text, color, terminalWidth(stdout)); err != nil {
			return err
		}
		if !o.once {
			text.WriteString("\n")
		}
		_, err := text.WriteTo(stdout)
		return err
	}
}

// draw replaces the table on a terminal. Its rows fit the terminal's height.
func (o *topOptions) draw(screen *terminal.Screen, file int, m *top.Measurement, color bool) error {
	width, height, err := term.GetSize(file)
	if err != nil {
		return err
	}
	m.Limit(max(1, height-1-m.Lines()))
	var text bytes.Buffer
	if err := m.WriteTable(&text, color, width); err != nil {
		return err
	}
	return screen.Show(text.String(), width)
}

// completeGateway completes the argument: the Gateways in the cluster.
func (o *topOptions) completeGateway(cmd *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	other := operationOptions{kubeconfig: o.kubeconfig, context: o.context, controller: o.controller, controllerNamespace: o.controllerNamespace}
	return other.completeGateway(cmd, nil, "")
}
