package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/convert"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// run executes the command.
func (o *convertOptions) run(cmd *cobra.Command) error {
	err := o.execute(cmd)
	if err != nil && cmd.Context().Err() != nil {
		return errInterrupted
	}
	return err
}

// execute converts the configuration, and prints the objects or the comparison.
func (o *convertOptions) execute(cmd *cobra.Command) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	input, err := o.read(cmd)
	if err != nil {
		return err
	}
	result := convert.Convert(input, o.options())
	if err := result.Verify(cmd.Context(), o.options()); err != nil {
		return fmt.Errorf("verify the objects: %w", err)
	}
	var out bytes.Buffer
	differs := result.Differs()
	if o.compare {
		comparison, err := convert.Compare(cmd.Context(), input, result, o.options(), input.Requests())
		if err != nil {
			return fmt.Errorf("compare: %w", err)
		}
		differs = differs || len(comparison.Differences)+len(comparison.Problems) > 0
		err = comparison.WriteTable(&out, convert.Style{Color: o.color.enabled(cmd.OutOrStdout()), Width: terminalWidth(cmd.OutOrStdout())})
		if err != nil {
			return fmt.Errorf("print the comparison: %w", err)
		}
	} else if err := result.WriteYAML(&out, input.Name); err != nil {
		return fmt.Errorf("print the objects: %w", err)
	}
	printNotes(cmd.ErrOrStderr(), input.Name, result.Notes)
	if err := o.print(cmd.OutOrStdout(), &out); err != nil {
		return fmt.Errorf("print the output: %w", err)
	}
	if o.strict && differs {
		return errNotExpressed
	}
	return nil
}

// print prints the output, with colors if --color enables them.
func (o *convertOptions) print(stdout io.Writer, out *bytes.Buffer) error {
	if o.compare && o.color.enabled(stdout) {
		stdout = withColors(stdout)
	}
	_, err := out.WriteTo(stdout)
	return err
}

// check returns all errors in the flags, and reads the environment.
func (o *convertOptions) check(cmd *cobra.Command) error {
	if err := o.checkInput(); err != nil {
		return withHelp(cmd, err, "")
	}
	var errs flagErrors
	namespace, name, ok := strings.Cut(o.gateway, "/")
	if !ok || config.CheckNamespace(namespace) != nil || len(validation.IsDNS1123Label(name)) > 0 {
		errs.add("gateway", fmt.Errorf("must be of the form namespace/name, got %q", o.gateway))
	}
	if o.gatewayClass != "" && len(validation.IsDNS1123Subdomain(o.gatewayClass)) > 0 {
		errs.add("gateway-class", fmt.Errorf("must be a valid name, got %q", o.gatewayClass))
	}
	errs.checkNamespace(o.namespace)
	errs.add("data-plane", checkDataPlane(o.dataPlane))
	errs.add("color", o.color.check())
	if !o.compare && cmd.Flags().Changed("color") {
		errs = append(errs, errors.New("--color has an effect only with --compare"))
	}
	errs.add("cluster-domain", config.CheckClusterDomain(o.clusterDomain))
	errs.add("controller-name", config.CheckControllerName(o.controller))
	errs.add("controller-namespace", config.CheckNamespace(o.controllerNamespace))
	return errors.Join(append(errs, o.checkCloudflare())...)
}

// checkInput returns an error unless the flags name one input.
func (o *convertOptions) checkInput() error {
	switch {
	case o.path == "" && o.tunnel == "":
		return errors.New("convert requires either --filename or --from-tunnel")
	case o.path != "" && o.tunnel != "":
		return errors.New("convert accepts --filename or --from-tunnel, and not both")
	}
	return nil
}

// checkCloudflare reads the environment if the configuration is at Cloudflare.
func (o *convertOptions) checkCloudflare() error {
	if o.tunnel == "" {
		return nil
	}
	if err := errors.Join(config.FromEnvironment([]config.Group{o.group}, os.LookupEnv), o.cloudflare.CheckFormat()); err != nil {
		return err
	}
	var errs []error
	if o.cloudflare.AccountID == "" {
		errs = append(errs, fmt.Errorf("no account: set %s to the ID of the tunnel's account", config.EnvName("cloudflare-account-id")))
	}
	if o.cloudflare.APIToken == "" {
		errs = append(errs, fmt.Errorf("no API token: set %s to a token with the permission Cloudflare Tunnel: Read", config.EnvName("cloudflare-api-token")))
	}
	return errors.Join(errs...)
}

// read reads the configuration from the file or from Cloudflare.
func (o *convertOptions) read(cmd *cobra.Command) (*convert.Configuration, error) {
	switch o.path {
	case "":
		return o.readTunnel(cmd)
	case "-":
		text, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return convert.Parse("stdin", text)
	}
	text, err := os.ReadFile(o.path)
	if err != nil {
		return nil, err
	}
	return convert.Parse(o.path, text)
}

func (o *convertOptions) readTunnel(cmd *cobra.Command) (*convert.Configuration, error) {
	var client cloudflare.Client
	p, err := client.Open(cloudflare.Options{AccountID: o.cloudflare.AccountID, APIToken: string(o.cloudflare.APIToken), BaseURL: o.cloudflare.BaseURL})
	if err != nil {
		return nil, err
	}
	encoded, err := p.RawConfiguration(cmd.Context(), provider.TunnelID(o.tunnel))
	switch name := "tunnel " + o.tunnel; {
	case errors.Is(err, provider.ErrLocallyManaged):
		return nil, fmt.Errorf("%s is locally managed, so its configuration is in a file on the machine of its connectors: use --filename", name)
	case err != nil:
		return nil, err
	case len(encoded) == 0 || string(encoded) == "null":
		return nil, fmt.Errorf("%s has no configuration", name)
	default:
		return convert.ParseRemote(name, encoded)
	}
}

// options returns the options that the flags set.
func (o *convertOptions) options() convert.Options {
	namespace, name, _ := strings.Cut(o.gateway, "/")
	return convert.Options{
		GatewayNamespace: namespace, GatewayName: name, GatewayClass: o.gatewayClass, DefaultClass: config.DefaultClassName,
		ControllerName: o.controller, ControllerNamespace: o.controllerNamespace, Namespace: o.namespace, ClusterDomain: o.clusterDomain,
		ListenerSets: o.listenerSets, DataPlane: v1alpha1.DataPlane(o.dataPlane),
	}
}

// printNotes prints the notes, and a summary.
func printNotes(w io.Writer, input string, notes []convert.Note) {
	counts := map[convert.NoteKind]int{}
	for _, n := range notes {
		counts[n.Kind]++
		terminal.Printf(w, "%s: %s: %s\n", n.Place(input), n.Kind, n.String())
	}
	if len(notes) > 0 {
		terminal.Printf(w, "different: %d, steps: %d, information: %d\n", counts[convert.NoteDifferent], counts[convert.NoteStep], counts[convert.NoteInfo])
	}
}
