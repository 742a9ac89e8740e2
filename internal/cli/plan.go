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
	why           string
	strict        bool
	clusterDomain string
	controller    string
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

Exit status: 0; 1 when a manifest is not valid; 2 with --strict when a
condition is not in its good state.`,
		Example: `  tunnel-gateway plan -f gateway.yaml -f teams/
  kubectl get gatewayclasses,gateways,listenersets,httproutes,grpcroutes,referencegrants,services,endpointslices,namespaces,secrets,tunnelconfigurations -A -o yaml | tunnel-gateway plan -f - -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.paths, "filename", "f", nil, "`file` or directory of manifests, or - for standard input; may be repeated")
	f.StringVar(&o.namespace, "namespace", "default", "`namespace` of objects that name none")
	f.StringVarP(&o.output, "output", "o", "table", "`format`: table, yaml or json")
	f.StringVar(&o.why, "why", "", "show instead what becomes of a `request`, HOST[/PATH]: its listeners, its rule, and what that beats")
	f.BoolVar(&o.strict, "strict", false, "end with status 2 when a condition is not in its good state")
	f.StringVar(&o.clusterDomain, "cluster-domain", config.DefaultClusterDomain, "DNS `domain` of the cluster")
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, "`name` of the controller in GatewayClasses")
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	return cmd
}

func (o *planOptions) run(cmd *cobra.Command) error {
	write, err := planWriter(o.output)
	request, badRequest := o.request()
	if err := errors.Join(err, badRequest, o.validate()); err != nil {
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
	// Printed as a whole or not at all.
	var out bytes.Buffer
	var shown printable = made
	if request != nil {
		shown = made.Why(*request)
	}
	if err := write(&out, shown); err != nil {
		return fmt.Errorf("printing the plan: %w", err)
	}
	for _, skipped := range files.Skipped {
		fmt.Fprintf(cmd.ErrOrStderr(), "skipped %d of kind %s\n", skipped.Count, skipped.GroupKind)
	}
	if _, err := out.WriteTo(cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("printing the plan: %w", err)
	}
	if o.strict && !made.Good() {
		return errNotGood
	}
	return nil
}

// request returns what --why asks for, or nil when it asks for nothing.
func (o *planOptions) request() (*gateway.Request, error) {
	if o.why == "" {
		return nil, nil //nolint:nilnil // neither is there
	}
	request, err := gateway.ParseRequest(o.why)
	if err != nil {
		return nil, fmt.Errorf("--why %w", err)
	}
	return &request, nil
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

// printable is what plan prints.
type printable interface{ WriteTable(w io.Writer) error }

// planWriter returns how something is printed in a format.
func planWriter(format string) (func(io.Writer, printable) error, error) {
	switch format {
	case "table":
		return func(w io.Writer, p printable) error { return p.WriteTable(w) }, nil
	case "json":
		return func(w io.Writer, p printable) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			encoder.SetEscapeHTML(false)
			return encoder.Encode(p)
		}, nil
	case "yaml":
		return func(w io.Writer, p printable) error {
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
