package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

// convertOptions are the flags for convert.
type convertOptions struct {
	path                string
	tunnel              string
	gateway             string
	gatewayClass        string
	namespace           string
	listenerSets        bool
	dataPlane           string
	clusterDomain       string
	controller          string
	controllerNamespace string
	compare             bool
	strict              bool
	color               colorMode
	cloudflare          config.Cloudflare
	group               config.Group
}

const convertHelp = `Converts a cloudflared configuration, from a file or from a remotely managed tunnel, into
a Gateway, ListenerSets, HTTPRoutes, GRPCRoutes and a TunnelConfiguration. convert prints
them as commented YAML, and changes nothing.

cloudflared uses the first rule that matches. Therefore, each hostname gets routes with all
the rules that its requests can reach, in the same order. convert prints what the objects
cannot express to standard error, with the line in the configuration and what to do.
Requests for such a rule get the status 500, and never reach the next rule.

With --compare, convert prints each rule and what it becomes, and the requests that would
get another answer. It derives requests from the rules' hostnames and paths, and compares
cloudflared's answers with those of the converted objects. The comparison assumes that the
Services exist, with the appProtocol that the notes require.

The permission Cloudflare Tunnel: Read is sufficient for --from-tunnel. If a flag's
description ends with a name in brackets, the environment variable with this name also sets
the flag.

Exit status:
  0    success
  1    an error occurred, or cloudflared would reject the configuration
  2    with --strict, the objects do not express everything
  130  Ctrl-C ended the command`

// convertCommand returns the command convert. program is the program name in the examples.
func convertCommand(program string) *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert (-f FILE | --from-tunnel ID)",
		Short: "Convert a cloudflared configuration into a Gateway and routes",
		Long:  convertHelp,
		Example: strings.ReplaceAll(`  PROGRAM convert -f config.yml >converted.yaml
  PROGRAM convert -f config.yml --compare
  PROGRAM convert -f config.yml --gateway infra/shared --namespace shop
  PROGRAM convert --from-tunnel 95a940ff-8450-4ced-9450-bcb55e97e7d5 --strict
  PROGRAM convert -f config.yml | PROGRAM plan -f - --context production`, "PROGRAM", program),
		Args: func(cmd *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return fmt.Errorf("convert accepts no arguments, got %q; specify the configuration with -f. See %s", arguments[0], helpOf(cmd))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags())
	registerCompletion(cmd, "color", cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "data-plane", cobra.FixedCompletions(dataPlanes, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // fails only for a flag that does not exist
	return cmd
}

// dataPlanes are the values that --data-plane accepts.
var dataPlanes = []string{string(v1alpha1.DataPlaneIngressRules), string(v1alpha1.DataPlaneEnvoy)}

func (o *convertOptions) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.path, "filename", "f", "", "cloudflared configuration `file`, or - for standard input")
	f.StringVar(&o.tunnel, "from-tunnel", "", "`ID` of a remotely managed tunnel whose configuration convert reads from Cloudflare")
	f.StringVar(&o.gateway, "gateway", "infra/converted", "`namespace/name` of the converted Gateway")
	f.StringVar(&o.gatewayClass, "gateway-class", "", "`name` of an existing GatewayClass for the Gateway (default "+config.DefaultClassName+", or a new class for settings that a Gateway cannot set)")
	f.StringVar(&o.namespace, "namespace", "", "`namespace` in which cloudflared runs, for Services that the configuration names without one")
	f.BoolVar(&o.listenerSets, "listener-sets", true, "put the listeners into ListenerSets, in the namespaces of the Services; otherwise, the Gateway has all listeners")
	f.StringVar(&o.dataPlane, "data-plane", dataPlanes[0], "`name` of the Gateway's data plane: "+strings.Join(dataPlanes, " or "))
	f.BoolVar(&o.compare, "compare", false, "compare the configuration with the converted objects instead of printing them")
	f.BoolVar(&o.strict, "strict", false, "exit with status 2 if the objects do not express everything")
	f.StringVar((*string)(&o.color), "color", "auto", colorUsage)
	f.StringVar(&o.clusterDomain, "cluster-domain", config.DefaultClusterDomain, clusterDomainUsage)
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, controllerNameUsage)
	f.StringVar(&o.controllerNamespace, "controller-namespace", config.DefaultControllerNamespace, controllerNamespaceUsage)
	o.group = o.cloudflare.ReadFlags()
	addEnvironment(o.group.Flags)
	f.AddFlagSet(o.group.Flags)
}
