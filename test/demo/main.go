// Command demo shows the whole of tunnel-gateway on one machine: a real
// control plane, the real controller binary, the simulator in Cloudflare's
// place and an HTTP backend behind each Service, with the objects of
// config/samples. It makes requests through the tunnel, and says whether their
// answers are right.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	accountID = "0123456789abcdef0123456789abcdef"
	apiToken  = "demo-token"
)

type options struct {
	once       bool
	controller string
	samples    string
	rbac       string
	port       string
}

func main() {
	o := options{port: os.Getenv("DEMO_PORT")}
	if o.port == "" {
		o.port = "8080"
	}
	flag.BoolVar(&o.once, "once", false, "end after the requests, with status 0 when all answers were right")
	flag.StringVar(&o.controller, "controller", "bin/tunnel-gateway", "the controller's `binary`")
	flag.StringVar(&o.samples, "samples", "config/samples", "`directory` of the manifests to apply")
	flag.StringVar(&o.rbac, "rbac", "config/rbac", "`directory` of the manifests that grant the controller its permissions")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	// Before anything slow: a port that is taken ends the demo at once.
	front, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", o.port))
	if err != nil {
		return fmt.Errorf("the port of the tunnel is not free, set DEMO_PORT to another: %w", err)
	}
	dir, err := os.MkdirTemp("", "tunnel-gateway-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of temporary files

	printStep("starting kube-apiserver, kube-controller-manager and etcd with the Gateway API's CRDs")
	control, err := cluster.Start(ctx, cluster.Options{Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer control.Stop() //nolint:errcheck // the demo is over; there is nobody left to tell
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := control.Kubeconfig(kubeconfig); err != nil {
		return err
	}

	printStep("starting the Cloudflare simulator")
	backends := newBackends()
	defer backends.close()
	edge, api, err := startEdge(front, backends)
	if err != nil {
		return err
	}
	defer edge.Close()

	printStep("applying %s, and starting the controller with its permissions: %s controller", o.rbac, o.controller)
	identity := filepath.Join(dir, "identity")
	if _, err := cluster.ControllerIdentity(ctx, control.Config, o.rbac, identity); err != nil {
		return err
	}
	controller, err := startController(o.controller, identity, api, filepath.Join(dir, "controller.log"))
	if err != nil {
		return err
	}
	defer controller.Stop() //nolint:errcheck // the demo is over; there is nobody left to tell

	printStep("applying %s", o.samples)
	c, err := client.New(control.Config, client.Options{Scheme: manifest.Scheme()})
	if err != nil {
		return err
	}
	return runDemo(ctx, control.Config, c, o, demoPaths{kubeconfig, api, filepath.Join(dir, "controller.log")}, controller.Exited())
}

// demoPaths are what a user of the demo needs to look further.
type demoPaths struct {
	kubeconfig string // a file
	api        string // the URL of the simulator's API
	log        string // the controller's, a file
}

// runDemo applies the samples, waits for them to be served, and tries them.
func runDemo(ctx context.Context, config *rest.Config, c client.Client, o options, at demoPaths, exited <-chan struct{}) error {
	if err := apply(ctx, c, o.samples); err != nil {
		return err
	}
	address := "http://127.0.0.1:" + o.port
	if err := checkSamples(ctx, config, c, address); err != nil {
		return fmt.Errorf("%w; the controller's log is %s", err, keepLog(at.log))
	}
	if o.once {
		return nil
	}
	fmt.Printf(`
The tunnel is served on %[1]s until you press Ctrl-C. Try, in another terminal:

  curl -H 'Host: team-a.example.com' %[1]s/api/orders
  export KUBECONFIG=%[2]s
  kubectl get gateways,listenersets,httproutes,tunnels -A
  kubectl edit httproute -n team-a web
  kubectl delete listenerset -n team-a team-a   # team B inherits the hostname
  export CLOUDFLARE_BASE_URL=%[4]s CLOUDFLARE_ACCOUNT_ID=%[5]s CLOUDFLARE_API_TOKEN=%[6]s
  bin/tunnel-gateway plan --diff                # what a push would change in the simulator

The controller's log is %[3]s.
`, address, at.kubeconfig, at.log, at.api, accountID, apiToken)
	select {
	case <-ctx.Done():
		printStep("stopping")
		return nil
	case <-exited:
		return fmt.Errorf("the controller has ended; its log is %s", keepLog(at.log))
	}
}

func checkSamples(ctx context.Context, config *rest.Config, c client.Client, address string) error {
	if err := waitUntilProgrammed(ctx, c); err != nil {
		return err
	}
	if err := printTable(ctx, c); err != nil {
		return err
	}
	if err := printTunnels(ctx, config); err != nil {
		return err
	}
	return tryRequests(ctx, address)
}

// startEdge serves the API on a free port, and the first tunnel on front.
func startEdge(front net.Listener, backends *backends) (*simulator.Server, string, error) {
	created := make(chan simulator.Tunnel, 16)
	edge := simulator.New(simulator.Options{
		Dial: backends.dial, AccountID: accountID, Token: apiToken,
		OnCreate: func(t simulator.Tunnel) { created <- t },
	})
	go func() { edge.Listen((<-created).ID, front) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: edge.API(), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) //nolint:errcheck // it ends with the process
	return edge, "http://" + listener.Addr().String() + "/client/v4", nil
}

// startController runs the binary as a user would.
func startController(binary, kubeconfig, api, log string) (*controllerproc.Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the controller writes to it
	controller, err := controllerproc.Start(controllerproc.Options{
		Binary: binary, Kubeconfig: kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "demo",
		Cloudflare: api, AccountID: accountID, Token: apiToken,
		Flags: []string{"--leader-election=true", "--log-format=console"}, Output: out,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the controller (make build makes it): %w", err)
	}
	return controller, nil
}

// keepLog moves a file out of the directory that is removed at the end.
func keepLog(file string) string {
	kept := filepath.Join(os.TempDir(), "tunnel-gateway-demo-controller.log")
	if err := os.Rename(file, kept); err != nil {
		return file
	}
	return kept
}

func printStep(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) }
