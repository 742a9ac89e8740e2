package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

type planOptions struct {
	paths         []string
	namespace     string
	output        string
	strict        bool
	clusterDomain string
	controller    string
	diff          diffOptions
}

func planCommand() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIR|- ...",
		Short: "Show what the controller would do with manifests, without a cluster",
		Long: `Reads manifests and shows the effective hostname table of each Gateway, the
ingress rules of its tunnel and the status of every object, as they are when
the push succeeds. Kinds that are not read are skipped and counted. Of a
directory its own files are read, not those of its subdirectories.

Without a GatewayClass among the manifests, Gateways of the class ` + config.DefaultClassName + `
are planned.

With --diff the documents are compared with those that the tunnels hold at
Cloudflare now. Nothing is written there, so a token with the permission
Cloudflare Tunnel: Read will do. A flag that has a variable in brackets can be
given in the environment instead.

Exit status: 0; 1 when a manifest is not valid or a tunnel cannot be read; 2
with --strict when a condition is not in its good state; 3 with --diff when a
push would change a tunnel.`,
		Example: `  tunnel-gateway plan -f gateway.yaml -f teams/
  kubectl get gatewayclasses,gateways,listenersets,httproutes,grpcroutes,referencegrants,services,endpointslices,namespaces,secrets,tunnelconfigurations -A -o yaml | tunnel-gateway plan -f - -o json
  CLOUDFLARE_ACCOUNT_ID=... CLOUDFLARE_API_TOKEN=... tunnel-gateway plan -f gateway.yaml --diff`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.paths, "filename", "f", nil, "`file` or directory of manifests, or - for standard input; may be repeated")
	f.StringVar(&o.namespace, "namespace", "default", "`namespace` of objects that name none")
	f.StringVarP(&o.output, "output", "o", "table", "`format`: table, yaml or json")
	f.BoolVar(&o.strict, "strict", false, "end with status 2 when a condition is not in its good state")
	f.StringVar(&o.clusterDomain, "cluster-domain", config.DefaultClusterDomain, "DNS `domain` of the cluster")
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, "`name` of the controller in GatewayClasses")
	o.diff.addFlags(f)
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command) error {
	write, err := planWriter(o.output)
	if err := errors.Join(err, o.validate(), o.diff.complete()); err != nil {
		return err
	}
	// The program ends in a moment, and time is dearer to it than memory.
	debug.SetGCPercent(400)
	controller := gatewayv1.GatewayController(o.controller)
	files, err := state.FromFiles(o.paths, manifest.Options{Namespace: o.namespace, Stdin: cmd.InOrStdin()}, controller, config.DefaultClassName)
	if err != nil {
		return err
	}
	made, err := plan.Make(cmd.Context(), files, gateway.Options{ControllerName: controller, ClusterDomain: o.clusterDomain}, time.Now())
	if err != nil {
		return err
	}
	var unread error
	if o.diff.wanted {
		unread = o.diff.compare(cmd, made, files)
		if o.output == "table" {
			colour := o.diff.colours(cmd.OutOrStdout())
			write = func(w io.Writer, p *plan.Plan) error { return p.WriteDiff(w, colour) }
		}
	}
	// Printed as a whole or not at all.
	var out bytes.Buffer
	if err := write(&out, made); err != nil {
		return fmt.Errorf("printing the plan: %w", err)
	}
	for _, skipped := range files.Skipped {
		fmt.Fprintf(cmd.ErrOrStderr(), "skipped %d of kind %s\n", skipped.Count, skipped.GroupKind)
	}
	if _, err := out.WriteTo(cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("printing the plan: %w", err)
	}
	return o.verdict(made, unread)
}

// verdict is what the exit status says of a plan that was printed.
func (o *planOptions) verdict(made *plan.Plan, unread error) error {
	switch {
	case unread != nil:
		return unread
	case o.strict && !made.Good():
		return errNotGood
	case made.Different():
		return errDifferent
	}
	return nil
}

// validate returns all that is wrong with the flags, by name.
func (o *planOptions) validate() error {
	var errs []error
	check := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s %w", flag, err))
		}
	}
	check("cluster-domain", config.CheckClusterDomain(o.clusterDomain))
	check("controller-name", config.CheckControllerName(o.controller))
	check("namespace", config.CheckNamespace(o.namespace))
	return errors.Join(errs...)
}

// planWriter returns how a plan is printed in a format.
func planWriter(format string) (func(io.Writer, *plan.Plan) error, error) {
	switch format {
	case "table":
		return func(w io.Writer, p *plan.Plan) error { return p.WriteTable(w) }, nil
	case "json":
		return func(w io.Writer, p *plan.Plan) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			encoder.SetEscapeHTML(false)
			return encoder.Encode(p)
		}, nil
	case "yaml":
		return func(w io.Writer, p *plan.Plan) error {
			text, err := yaml.Marshal(p)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}, nil
	default:
		return nil, fmt.Errorf("--output %q is none of table, yaml, json", format)
	}
}
