// Command demo runs tunnel-gateway on one machine, with a real control plane, the
// real controller binary, the Cloudflare simulator, the objects of config/samples,
// and an HTTP backend for each Service. It sends requests through the tunnel and
// checks the answers.
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

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

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
	flag.BoolVar(&o.once, "once", false, "exit after the requests, with status 0 if all answers are as expected")
	flag.StringVar(&o.controller, "controller", "bin/tunnel-gateway", "path of the controller `binary`")
	flag.StringVar(&o.samples, "samples", "config/samples", "`directory` of the manifests to apply")
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
		return fmt.Errorf("listen for the tunnel: %w; set DEMO_PORT to use another port", err)
	}
	dir, err := os.MkdirTemp("", "tunnel-gateway-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files

	printStep("starting kube-apiserver and etcd with the CRDs of the Gateway API")
	control, err := cluster.Start(ctx, cluster.Options{Progress: os.Stderr, WithoutControllers: true})
	if err != nil {
		return err
	}
	defer control.Stop() //nolint:errcheck // an error does not matter at the end of the demo
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := control.Kubeconfig(kubeconfig); err != nil {
		return err
	}

	printStep("starting the Cloudflare simulator")
	backends := newBackends()
	defer backends.close()
	edge, api, err := startEdge(listener, backends)
	if err != nil {
		return err
	}
	defer edge.Close()

	printStep("applying the controller's permissions from %s and starting %s controller", o.rbac, o.controller)
	identity := filepath.Join(dir, "identity")
	if _, err := cluster.ControllerIdentity(ctx, control.Config, o.rbac, identity); err != nil {
		return err
	}
	controller, err := startController(o.controller, identity, api, filepath.Join(dir, "controller.log"))
	if err != nil {
		return err
	}
	defer controller.Stop() //nolint:errcheck // an error does not matter at the end of the demo

	printStep("applying the samples from %s", o.samples)
	c, err := client.New(control.Config, client.Options{Scheme: manifest.Scheme()})
	if err != nil {
		return err
	}
	return runDemo(ctx, control.Config, c, o, demoPaths{kubeconfig, api, filepath.Join(dir, "controller.log")}, controller.Exited())
}

// demoPaths are the files and addresses that the demo prints for the user.
type demoPaths struct {
	kubeconfig string // path of the kubeconfig
	api        string // URL of the simulator's API
	log        string // path of the controller's log
}

// runDemo applies the samples, waits until the tunnel serves them, and checks them.
// Without --once it then runs until the context is canceled.
func runDemo(ctx context.Context, config *rest.Config, c client.Client, o options, paths demoPaths, exited <-chan struct{}) error {
	if err := apply(ctx, c, o.samples); err != nil {
		return err
	}
	address := "http://127.0.0.1:" + o.port
	if err := checkSamples(ctx, config, c, address); err != nil {
		return fmt.Errorf("%w; see the controller's log in %s", err, keepLog(paths.log))
	}
	if o.once {
		return nil
	}
	fmt.Printf(`
The tunnel is served on %[1]s until you press Ctrl-C. Try in another terminal:

  curl -H 'Host: team-a.example.com' %[1]s/api/orders
  export KUBECONFIG=%[2]s
  kubectl get gateways,listenersets,httproutes,tunnels -A
  kubectl edit httproute -n team-a web
  kubectl delete listenerset -n team-a team-a   # team B does not get the hostname
  kubectl annotate namespace team-b tunnelgateway.dev/hostnames='*' --overwrite   # now it does
  export CLOUDFLARE_BASE_URL=%[4]s CLOUDFLARE_ACCOUNT_ID=%[5]s CLOUDFLARE_API_TOKEN=%[6]s
  bin/tunnel-gateway plan --diff                # show what the next push would change

The controllers of Kubernetes do not run, so a deleted namespace stays Terminating.

The controller's log is in %[3]s.
`, address, paths.kubeconfig, paths.log, paths.api, accountID, apiToken)
	select {
	case <-ctx.Done():
		printStep("stopping")
		return nil
	case <-exited:
		return fmt.Errorf("the controller has exited; see its log in %s", keepLog(paths.log))
	}
}

// checkSamples waits until the samples are programmed, prints their statuses, and
// checks the requests and the permissions for hostnames.
func checkSamples(ctx context.Context, config *rest.Config, c client.Client, address string) error {
	if err := waitUntilProgrammed(ctx, c); err != nil {
		return err
	}
	if err := printStatuses(ctx, c); err != nil {
		return err
	}
	if err := printTunnels(ctx, config); err != nil {
		return err
	}
	if err := checkRequests(ctx, address); err != nil {
		return err
	}
	return checkPermissions(ctx, c, address)
}

// startEdge starts the simulator. It serves the first tunnel on tunnelListener and
// the API on a free port, whose URL it returns.
func startEdge(tunnelListener net.Listener, backends *backends) (*simulator.Server, string, error) {
	created := make(chan simulator.Tunnel, 16)
	edge := simulator.New(simulator.Options{
		Dial: backends.dial, AccountID: accountID, Token: apiToken,
		OnCreate: func(t simulator.Tunnel) { created <- t },
	})
	go func() { edge.Listen((<-created).ID, tunnelListener) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: edge.API(), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) //nolint:errcheck // it serves until the process ends
	return edge, "http://" + listener.Addr().String() + "/client/v4", nil
}

// startController starts the controller binary.
func startController(binary, kubeconfig, api, log string) (*controllerproc.Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // only the controller writes to the file
	controller, err := controllerproc.Start(controllerproc.Options{
		Binary: binary, Kubeconfig: kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "demo",
		Cloudflare: api, AccountID: accountID, Token: apiToken,
		Flags: []string{"--leader-election=true", "--log-format=console"}, Output: out,
	})
	if err != nil {
		return nil, fmt.Errorf("start the controller, which make build builds: %w", err)
	}
	return controller, nil
}

// keepLog moves the log out of the directory that is removed at the end, and
// returns its new path.
func keepLog(file string) string {
	logPath := filepath.Join(os.TempDir(), "tunnel-gateway-demo-controller.log")
	if err := os.Rename(file, logPath); err != nil {
		return file
	}
	return logPath
}

func printStep(format string, args ...any) { fmt.Printf("==> "+format+"\n", args...) }
