package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/operation"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// defaultTimeout is the default for --timeout.
const defaultTimeout = 5 * time.Minute

// operationOptions are the flags that wait and the commands that request an operation
// share.
type operationOptions struct {
	operation           operation.Operation
	namespace           string
	kubeconfig          string
	context             string
	controller          string
	controllerNamespace string
	wait                bool
	timeout             time.Duration
}

// operationTexts describe the operations.
var operationTexts = []struct {
	operation   operation.Operation
	short, long string
}{
	{operation.Reconcile, "Retry a Gateway now and read its tunnel again", `Ends the controller's backoffs for the Gateway, and makes it read the tunnel's
configuration, token and connections again. reconcile annotates the Tunnel.

If the Gateway is paused, the controller only reads. If the Gateway is gone and its
Tunnel remains, the controller tries again to delete the tunnel.`},
	{operation.Pause, "Stop all changes to a Gateway's tunnel at Cloudflare", `Stops all changes at Cloudflare and to the connectors. The tunnel keeps serving its
last configuration. With the data plane Envoy, route changes still take effect.

pause annotates the Gateway. The pause is in effect when the Tunnel's spec.paused
is true.`},
	{operation.Resume, "Resume a paused Gateway", `Ends a pause. resume removes the Gateway's annotation. The operation is in effect
when the Gateway is Programmed, the connectors have rolled out, and no data plane
change is in progress.`},
	{operation.RotateToken, "Rotate a Gateway's connector token", `Replaces the token with which the Gateway's connectors authenticate, restarts the
connectors, and disconnects the connectors that use the old token. rotate-token
annotates the Tunnel.`},
	{operation.Wait, "Wait until a Gateway uses its GatewayClass's data plane", `Waits until the tunnel serves the Gateway with its GatewayClass's data plane: the
Gateway is Programmed for its generation, the connectors have rolled out, and no data
plane change is in progress. wait changes nothing. It shows the phase of a data plane
change and what the change waits for.

wait reads the data plane in the GatewayClass and its TunnelConfiguration, so it also
waits until the controller has processed a new value. For other settings, use reconcile. The command ends when a user must act, for example because the routes
exceed the limits of ingress rules.

Exit status:
  0    the tunnel serves the Gateway with its GatewayClass's data plane
  1    an error occurred, a user must act first, or --timeout has passed
  130  Ctrl-C ended the command`},
}

// operationHelp ends the long description for each command that requests an operation.
const operationHelp = `

The command waits until the operation is in effect, and shows what is outstanding. If it
ends before that, the request stays in effect unless the message says that it is lost.

Exit status:
  0    the operation is in effect; with --wait=false, it was requested
  1    an error occurred, a user must act first, or --timeout has passed
  130  Ctrl-C ended the command`

// operationCommands returns the commands that request an operation, and wait. program is
// the program name in the examples.
func operationCommands(program string) []*cobra.Command {
	var commands []*cobra.Command
	for _, text := range operationTexts {
		o := &operationOptions{operation: text.operation, wait: true}
		if text.operation != operation.Wait {
			text.long += operationHelp
		}
		cmd := &cobra.Command{
			Use:               string(text.operation) + " GATEWAY",
			Short:             text.short,
			Long:              text.long,
			Example:           strings.ReplaceAll(strings.ReplaceAll("  PROGRAM VERB platform/shared\n  PROGRAM VERB shared -n platform --timeout 1m", "PROGRAM", program), "VERB", string(text.operation)),
			Args:              oneGateway,
			ValidArgsFunction: o.completeGateway,
			RunE:              func(cmd *cobra.Command, arguments []string) error { return o.run(cmd, arguments[0]) },
		}
		o.addFlags(cmd.Flags())
		registerCompletion(cmd, "context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return contextNames(o.kubeconfig)
		})
		commands = append(commands, cmd)
	}
	return commands
}

func (o *operationOptions) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` of the Gateway (default the namespace of the kubeconfig's context)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	f.StringVar(&o.context, "context", "", contextUsage)
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, controllerNameUsage)
	f.StringVar(&o.controllerNamespace, "controller-namespace", config.DefaultControllerNamespace, controllerNamespaceUsage)
	if o.operation != operation.Wait {
		f.BoolVar(&o.wait, "wait", true, "wait until the operation is in effect")
	}
	f.DurationVar(&o.timeout, "timeout", defaultTimeout, "maximum `duration` to wait, such as 90s or 10m")
}

// oneGateway rejects any arguments other than one Gateway.
func oneGateway(cmd *cobra.Command, arguments []string) error {
	switch {
	case len(arguments) == 0:
		return withHelp(cmd, fmt.Errorf("%s requires a Gateway name", cmd.Name()), "")
	case len(arguments) > 1:
		return withHelp(cmd, fmt.Errorf(`%s accepts one Gateway, got %d: "%s"`, cmd.Name(), len(arguments), strings.Join(arguments, `", "`)), "")
	}
	return nil
}

// run executes the command.
func (o *operationOptions) run(cmd *cobra.Command, argument string) error {
	if err := errors.Join(o.validate(cmd.Flags().Changed), o.checkArgument(argument)); err != nil {
		return err
	}
	target, err := o.target(argument)
	if err != nil {
		return err
	}
	w := operation.Waiting{Show: progress.New(streamOf(cmd.ErrOrStderr())).Step}
	if o.wait {
		w.Timeout = o.timeout
	}
	message, err := target.Run(cmd.Context(), o.operation, w)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(message))
	return err
}

// validate returns all errors in the flags.
func (o *operationOptions) validate(isSet func(flag string) bool) error {
	var errs flagErrors
	errs.add("controller-name", config.CheckControllerName(o.controller))
	errs.add("controller-namespace", config.CheckNamespace(o.controllerNamespace))
	errs.requireValues(isSet, flagValue{"context", o.context}, flagValue{"kubeconfig", o.kubeconfig}, flagValue{"namespace", o.namespace})
	errs.checkNamespace(o.namespace)
	switch {
	case isSet("timeout") && !o.wait:
		errs.add("timeout", errors.New("has no effect with --wait=false"))
	case o.timeout <= 0:
		errs.add("timeout", fmt.Errorf("must be greater than 0, got %s", o.timeout))
	}
	return errors.Join(errs...)
}

// checkArgument returns an error if the argument is not a valid Gateway name.
func (o *operationOptions) checkArgument(argument string) error {
	namespace, name, qualified := strings.Cut(argument, "/")
	switch {
	case argument == "" || qualified && (namespace == "" || name == "" || strings.Contains(name, "/")):
		return fmt.Errorf("GATEWAY must be of the form name or namespace/name, got %q", argument)
	case qualified && o.namespace != "":
		return fmt.Errorf("--namespace has no effect with GATEWAY %s, which contains a namespace", argument)
	}
	return nil
}

// target returns the Gateway that the argument names.
func (o *operationOptions) target(argument string) (operation.Target, error) {
	loaded := clientConfig(o.kubeconfig, o.context)
	live, err := connect(loaded)
	if err != nil {
		return operation.Target{}, err
	}
	t := operation.Target{Client: live, ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace}
	if namespace, name, ok := strings.Cut(argument, "/"); ok {
		t.Gateway = types.NamespacedName{Namespace: namespace, Name: name}
		return t, nil
	}
	t.Gateway = types.NamespacedName{Namespace: o.namespace, Name: argument}
	if o.namespace == "" {
		if t.Gateway.Namespace, _, err = loaded.Namespace(); err != nil {
			return t, fmt.Errorf("read the context's namespace: %w", err)
		}
	}
	return t, nil
}

// completeGateway completes the argument: the Gateways in the cluster, or in the
// --namespace namespace.
func (o *operationOptions) completeGateway(cmd *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	t, err := o.target("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cluster := state.Cluster{Live: t.Client, ControllerName: t.ControllerName, ControllerNamespace: t.ControllerNamespace}
	names, err := cluster.GatewayNames(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var values []cobra.Completion
	for _, name := range names {
		switch o.namespace {
		case "":
			values = append(values, name.String())
		case name.Namespace:
			values = append(values, name.Name)
		}
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}
