package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionTimeout limits the time that a completion waits for the cluster.
const completionTimeout = 2 * time.Second

// registerCompletion registers the function that completes a flag's values. The function
// must ignore errors, because a shell would print them into the command line.
func registerCompletion(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, values) // fails only for a flag that does not exist
}

// unquoteUsages removes the quotes that mark a flag's value name. The help text does not
// print them, but a completion would.
func unquoteUsages(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { _, flag.Usage = pflag.UnquoteUsage(flag) })
		unquoteUsages(cmd)
	}
}

func (o *sourceOptions) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return contextNames(o.kubeconfig)
}

// contextNames returns the contexts in the kubeconfig.
func contextNames(kubeconfig string) ([]cobra.Completion, cobra.ShellCompDirective) {
	raw, err := clientConfig(kubeconfig, "").RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeGateways completes the Gateways in the cluster, if plan reads a cluster.
func (o *planOptions) completeGateways(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if !o.readsCluster() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	reader, err := o.open(nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := reader.cluster(nil).GatewayNames(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	values := make([]cobra.Completion, len(names))
	for i, name := range names {
		values[i] = name.String()
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}
