package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/adoption"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// run executes the command.
func (o *adoptOptions) run(cmd *cobra.Command, names []string) error {
	err := o.execute(cmd, names)
	if err != nil && cmd.Context().Err() != nil && !errors.Is(err, adoption.ErrStillRequested) {
		return errInterrupted
	}
	return err
}

// execute shows the records and lets the controller adopt them.
func (o *adoptOptions) execute(cmd *cobra.Command, names []string) error {
	if err := o.check(cmd, names); err != nil {
		return err
	}
	live, err := o.connect()
	if err != nil {
		return err
	}
	return o.executeOn(cmd, live, names)
}

// executeOn executes the command in the cluster.
func (o *adoptOptions) executeOn(cmd *cobra.Command, live client.WithWatch, names []string) error {
	line := progress.New(streamOf(cmd.ErrOrStderr()))
	candidates, err := o.examine(cmd.Context(), live, names, line)
	if err != nil {
		return err
	}
	asks := !o.dryRun && !o.yes && len(adoption.LeadingElsewhere(candidates)) > 0
	if err := o.show(cmd, candidates, asks); err != nil {
		return err
	}
	if count := len(adoption.Problems(candidates)); count > 0 {
		return fmt.Errorf("%d of %d records cannot be adopted; the command has requested nothing", count, len(candidates))
	}
	if o.dryRun || len(candidates) == 0 {
		return nil
	}
	if asks {
		if err := confirm(cmd, replacing(adoption.LeadingElsewhere(candidates))); err != nil {
			return err
		}
	}
	return o.adopt(cmd, live, candidates, line)
}

// adopt lets the controller adopt the records, and prints the results.
func (o *adoptOptions) adopt(cmd *cobra.Command, live client.WithWatch, candidates []*adoption.Candidate, line *progress.Line) error {
	t := adoption.Target{
		Client: live, ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace,
		Timeout: o.timeout, Show: line.Step,
	}
	err := t.Adopt(cmd.Context(), candidates)
	if printErr := o.print(cmd.OutOrStdout(), candidates, adoption.WriteResults); printErr != nil {
		return errors.Join(err, printErr)
	}
	if failed := adoption.Failed(candidates); err == nil && failed > 0 {
		return fmt.Errorf("the controller has not adopted %d of %d records", failed, len(candidates))
	}
	return err
}

// connect returns a client for the cluster.
func (o *adoptOptions) connect() (client.WithWatch, error) {
	return connect(clientConfig(o.kubeconfig, o.context))
}

// examine reads the records for the names, or for all names with --leading-here.
func (o *adoptOptions) examine(ctx context.Context, live client.Reader, names []string, line *progress.Line) ([]*adoption.Candidate, error) {
	gateways, err := o.gateways(ctx, live, line.Step)
	if err != nil {
		return nil, err
	}
	var wanted []adoption.Wanted
	if o.leadingHere {
		wanted, err = adoption.SelectAll(gateways)
	} else {
		wanted, err = adoption.Select(gateways, names)
	}
	if err != nil {
		return nil, err
	}
	defer line.Step("reading the records at Cloudflare")()
	candidates, err := o.readRecords(ctx, wanted)
	if err == nil && o.leadingHere {
		candidates = adoption.LeadingHere(candidates, gateways)
	}
	return candidates, err
}

// gateways returns the controller's Gateways, as the controller decides about them.
func (o *adoptOptions) gateways(ctx context.Context, live client.Reader, step func(string) func()) ([]adoption.Gateway, error) {
	built, err := o.buildPlan(ctx, live, step)
	if err != nil {
		return nil, err
	}
	var all []adoption.Gateway
	for _, g := range built.DNSGateways() {
		found := adoption.Gateway{Gateway: g.Gateway, Settings: g.Settings, AccountID: g.AccountID, ClusterID: g.ClusterID}
		if g.Status != nil {
			found.Managed = int(g.Status.Hostnames[string(dns.VerdictManaged)])
		}
		all = append(all, found)
	}
	return all, nil
}

// buildPlan returns the controller's Gateways, as the controller decides about them, or only
// the one in --gateway.
func (o *adoptOptions) buildPlan(ctx context.Context, live client.Reader, step func(string) func()) (*plan.Plan, error) {
	cluster := state.Cluster{
		Live: live, ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace, Progress: step,
	}
	source, err := state.FromCluster(ctx, cluster, &manifest.Set{})
	if err != nil {
		return nil, err
	}
	built, err := plan.Build(ctx, source, plan.Options{
		Options: gateway.Options{
			ControllerName: cluster.ControllerName, ControllerNamespace: o.controllerNamespace, ClusterDomain: config.DefaultClusterDomain,
		},
		ClusterID: o.clusterID,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	if o.gateway != "" {
		if err := built.Select(o.gatewayName()); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// reservedReads is how many requests to Cloudflare are reserved together: two zones with one
// page of records each.
const reservedReads = 4

// readRecords reads each zone once, and returns what it contains for the hostnames.
func (o *adoptOptions) readRecords(ctx context.Context, wanted []adoption.Wanted) ([]*adoption.Candidate, error) {
	type key struct{ account, zone string }
	var accounts cloudflare.Client
	zones := map[key]*adoption.Zone{}
	failed := map[key]bool{}
	var candidates []*adoption.Candidate
	var errs []error
	// The budget neither delays nor rejects the requests after it has granted the reservation.
	ctx = provider.WithReservation(provider.WithPriority(ctx, provider.PriorityDNS), reservedReads)
	for _, w := range wanted {
		k := key{w.Gateway.AccountID, w.Zone.Name}
		if zones[k] == nil && !failed[k] {
			zone, err := o.readZone(ctx, &accounts, w)
			if err != nil {
				errs, failed[k] = append(errs, err), true
			}
			zones[k] = zone
		}
		if zone := zones[k]; zone != nil {
			candidates = append(candidates, adoption.Examine(zone, w))
		}
	}
	return candidates, errors.Join(errs...)
}

func (o *adoptOptions) readZone(ctx context.Context, accounts *cloudflare.Client, w adoption.Wanted) (*adoption.Zone, error) {
	d, err := accounts.OpenDNS(cloudflare.Options{AccountID: w.Gateway.AccountID, APIToken: string(o.cloudflare.APIToken), BaseURL: o.cloudflare.BaseURL}, "")
	if err != nil {
		return nil, err
	}
	return adoption.ReadZone(ctx, d, w.Zone, w.Gateway.AccountID)
}

// show prints the records before the adoption. With --output json, only the results are
// printed; standard error then has the records that the question is about.
func (o *adoptOptions) show(cmd *cobra.Command, candidates []*adoption.Candidate, asks bool) error {
	switch {
	case len(candidates) == 0 && o.output == "table":
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "No record without a valid mark leads to the Gateway.")
		return err
	case o.output == "table" || o.dryRun || len(candidates) == 0 || len(adoption.Problems(candidates)) > 0:
		return o.print(cmd.OutOrStdout(), candidates, adoption.WriteCandidates)
	case asks:
		return adoption.WriteCandidates(cmd.ErrOrStderr(), adoption.LeadingElsewhere(candidates), false, 0)
	}
	return nil
}

// print prints the candidates in the format of --output.
func (o *adoptOptions) print(stdout io.Writer, candidates []*adoption.Candidate, table func(io.Writer, []*adoption.Candidate, bool, int) error) error {
	if o.output == "json" {
		return writeJSON(stdout, struct {
			Records []*adoption.Candidate `json:"records"`
		}{append([]*adoption.Candidate{}, candidates...)})
	}
	return writeAdoption(stdout, o.color, candidates, table)
}

// writeJSON prints the value.
func writeJSON(stdout io.Writer, value any) error {
	text, err := encodeJSON(value)
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}

// writeAdoption prints a table.
func writeAdoption[T any](stdout io.Writer, mode colorMode, all []T, table func(io.Writer, []T, bool, int) error) error {
	color := mode.enabled(stdout)
	width := terminalWidth(stdout)
	if color {
		stdout = withColors(stdout)
	}
	return table(stdout, all, color, width)
}
