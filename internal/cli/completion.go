package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionTimeout is how long a shell waits for the cluster when somebody
// presses a key.
const completionTimeout = 2 * time.Second

// registerCompletion says what values a flag has. What cannot be found out is not said:
// an error would stand in the middle of somebody's command line.
func registerCompletion(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, values) // fails only for a flag that does not exist
}

// unquoteUsages takes the quotes off that mark the name of a flag's value: help
// leaves them out, and a shell that is told of the flag does not.
func unquoteUsages(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { _, flag.Usage = pflag.UnquoteUsage(flag) })
	}
}

// completeContexts names the contexts of the kubeconfig.
func (o *planOptions) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	raw, err := clientConfig(o.kubeconfig, "").RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeGateways names the Gateways of the cluster, where one is read.
func (o *planOptions) completeGateways(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if !o.readsCluster() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	cluster, err := o.cluster(func(string) func() { return func() {} })
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := cluster.GatewayNames(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	values := make([]cobra.Completion, len(names))
	for i, name := range names {
		values[i] = name.String()
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}
