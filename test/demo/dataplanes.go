package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// printDataPlanes prints which data plane serves each Gateway.
func (d *demo) printDataPlanes(ctx context.Context) error {
	var tunnels v1alpha1.TunnelList
	if err := d.client.List(ctx, &tunnels); err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "\nGATEWAY\tDATA PLANE\tREQUESTS ARE ROUTED BY")
	for _, t := range tunnels.Items {
		routers := map[v1alpha1.DataPlane]string{
			v1alpha1.DataPlaneIngressRules: "the connectors, by the ingress rules of the tunnel",
			v1alpha1.DataPlaneEnvoy:        "an Envoy beside each connector",
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", t.Status.Gateway, t.Status.DataPlane, routers[t.Status.DataPlane])
	}
	if d.envoy == "" {
		fmt.Fprintln(out, "(none)\tEnvoy\tEnvoy is missing on this machine")
	}
	return out.Flush()
}
