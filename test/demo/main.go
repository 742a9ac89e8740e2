// Command demo runs tunnel-gateway on one machine, with a real control plane, the real
// controller binary, the Cloudflare simulator, the objects in config/samples, and an HTTP
// backend for each Service. It sends requests through the tunnels and checks the
// responses. One Gateway has ingress rules. Where Envoy can be found, another has the
// data plane Envoy, with the real Envoy.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

type options struct {
	once         bool
	controller   string
	images       string
	samples      string
	envoySamples string
	rbac         string
	port         string
}

func main() {
	o := options{port: os.Getenv("DEMO_PORT")}
	if o.port == "" {
		o.port = "8080"
	}
	flag.BoolVar(&o.once, "once", false, "exit after the requests, with status 0 if all answers are as expected")
	flag.StringVar(&o.controller, "controller", "bin/tunnel-gateway", "path of the controller `binary`")
	flag.StringVar(&o.images, "images", "bin/demo-images", "`directory` of the programs that replace container images")
	flag.StringVar(&o.samples, "samples", "config/samples", "`directory` of the manifests to apply")
	flag.StringVar(&o.envoySamples, "envoy-samples", "config/samples/envoy", "`directory` of the manifests to apply if Envoy is found")
	flag.StringVar(&o.rbac, "rbac", "config/rbac", "`directory` of the manifests with the controller's permissions")
	flag.Parse()
	log.SetLogger(logr.Discard()) // envtest logs with controller-runtime, which otherwise warns about a missing logger
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	// Listen before the slow steps, so that the demo fails immediately if the port is
	// in use.
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", o.port))
	if err != nil {
		return fmt.Errorf("listen for the tunnels: %w; set DEMO_PORT to use another port", err)
	}
	dir, err := os.MkdirTemp("", "tunnel-gateway-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	d := &demo{options: o, dir: dir, backends: newBackends()}
	defer d.stop()
	if err := d.start(ctx, listener); err != nil {
		return err
	}
	if err := d.check(ctx); err != nil {
		return fmt.Errorf("%w; see the controller's log in %s", err, d.keepLog())
	}
	if o.once {
		return nil
	}
	d.printHints()
	select {
	case <-ctx.Done():
		printStep("stopping")
		return nil
	case <-d.controller.Exited():
		return fmt.Errorf("the controller has exited; see its log in %s", d.keepLog())
	}
}

// check applies the samples, waits until the tunnels serve them, and checks them.
func (d *demo) check(ctx context.Context) error {
	if err := d.applySamples(ctx); err != nil {
		return err
	}
	if err := waitUntilProgrammed(ctx, d.client); err != nil {
		return err
	}
	if err := d.printResults(ctx); err != nil {
		return err
	}
	if err := checkRequests(ctx, d.address()); err != nil {
		return err
	}
	if err := checkPermissions(ctx, d.client, d.address()); err != nil {
		return err
	}
	if err := d.checkAccess(ctx); err != nil {
		return err
	}
	if d.envoy == "" {
		return nil
	}
	return d.checkSplit(ctx)
}

func (d *demo) applySamples(ctx context.Context) error {
	printStep("applying the samples from %s", d.samples)
	if err := apply(ctx, d.client, d.samples); err != nil {
		return err
	}
	if d.envoy == "" {
		return nil
	}
	return d.applyEnvoySamples(ctx)
}

// printResults prints what the controller made of the samples.
func (d *demo) printResults(ctx context.Context) error {
	if err := printStatuses(ctx, d.client); err != nil {
		return err
	}
	if err := printTunnels(ctx, d.control.Config); err != nil {
		return err
	}
	if err := d.printDataPlanes(ctx); err != nil {
		return err
	}
	return d.zone.print()
}

func (d *demo) printHints() {
	fmt.Printf(`
The tunnels are served on %[1]s until you press Ctrl-C. Try in another terminal:

  curl -H 'Host: team-a.example.com' %[1]s/api/orders
  export KUBECONFIG=%[2]s
  kubectl get gateways,listenersets,httproutes,tunnels -A
  kubectl edit httproute -n team-a web
  kubectl delete listenerset -n team-a team-a   # team B does not get the hostname
  kubectl annotate namespace team-b tunnelgateway.dev/hostnames='*' --overwrite   # now it does
  kubectl get accesspolicies -A
  kubectl delete accesspolicy -n platform employees   # shared.example.com opens after 5 seconds
`, d.address(), d.kubeconfig())
	if d.envoy != "" {
		fmt.Printf(`  curl -H 'Host: %[2]s' -H 'x-canary: always' %[1]s
  kubectl edit httproute -n shop shop           # change the weights
  kubectl annotate gatewayclass cloudflare-tunnel tunnelgateway.dev/data-plane=Envoy && bin/tunnel-gateway wait platform/shared
`, d.address(), envoyHostname)
	}
	fmt.Printf(`  bin/tunnel-gateway rotate-token platform/shared
  export CLOUDFLARE_BASE_URL=%[1]s CLOUDFLARE_ACCOUNT_ID=%[2]s CLOUDFLARE_API_TOKEN=%[3]s
  bin/tunnel-gateway plan --diff                # show what the next push would change
  bin/tunnel-gateway check team-a.example.com --connect-to %[8]s --ca-file %[9]s
  curl $CLOUDFLARE_BASE_URL/zones/%[5]s/dns_records -H "Authorization: Bearer $CLOUDFLARE_API_TOKEN"

The last command shows the zone's records. A new hostname below %[6]s is reachable when it has a route. In namespaces
without the annotation tunnelgateway.dev/hostnames, no hostname is permitted.

The demo has no kube-controller-manager. It replaces the pods of changed Deployments only in namespace %[7]s. In
other namespaces, a backend answers for each Service without pods.

The controller's log is in %[4]s.
`, d.api, accountID, apiToken, d.log(), d.zone.id, zoneName, cluster.ControllerNamespace, d.secure, d.authority())
}

func (d *demo) address() string { return "http://127.0.0.1:" + d.port }

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }

// authority is a file with the authority of the edge's certificates.
func (d *demo) authority() string { return filepath.Join(d.dir, "edge-ca.pem") }

func (d *demo) log() string { return filepath.Join(d.dir, "controller.log") }

// keepLog moves the log out of the directory that is removed at the end, and returns its
// new path.
func (d *demo) keepLog() string {
	path := filepath.Join(os.TempDir(), "tunnel-gateway-demo-controller.log")
	if err := os.Rename(d.log(), path); err != nil {
		return d.log()
	}
	return path
}

func printStep(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) }
