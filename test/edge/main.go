// Command edge runs the Cloudflare simulator as a standalone program. It serves
// the API on one address, the edge for connectors on another, and each tunnel on
// its own address, which it prints when the tunnel is created. This package
// contains the flags and the listeners; package simulator contains the handlers.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

type settings struct {
	apiAddress       string
	connectorAddress string // empty if the edge is not served
	tunnelAddress    string
	origins          map[string]string
	options          simulator.Options
}

func parse(arguments []string) (settings, error) {
	s := settings{origins: map[string]string{}}
	flags := flag.NewFlagSet("edge", flag.ExitOnError)
	flags.StringVar(&s.apiAddress, "api", "127.0.0.1:8787", "`address` of the API, whose base path is /client/v4")
	flags.StringVar(&s.connectorAddress, "connectors", "",
		"`address` of the edge for connectors, which test/edge/connector reads from TUNNEL_EDGE (default: not served)")
	flags.StringVar(&s.tunnelAddress, "tunnels", "127.0.0.1:0",
		"`address` of the first tunnel; each further tunnel uses the next port, or any free port if the port is 0")
	flags.StringVar(&s.options.AccountID, "account", "", "the `ID` of the only account that exists (default: every account exists)")
	flags.StringVar(&s.options.Token, "token", "", "the API `token` that the API accepts (default: any)")
	flags.BoolVar(&s.options.AcceptInvalid, "accept-invalid", false,
		"store configurations that the connector rejects, instead of returning 400")
	flags.Func("origin", "the real address of an origin, as `host:port=address`; may be repeated (default: the origin's own address)",
		func(value string) error {
			origin, address, ok := strings.Cut(value, "=")
			if !ok || origin == "" || address == "" {
				return fmt.Errorf("must be host:port=address, got %q", value)
			}
			s.origins[origin] = address
			return nil
		})
	err := flags.Parse(arguments)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return s, err
}

// run serves until the context is canceled.
func run(ctx context.Context, arguments []string) error {
	s, err := parse(arguments)
	if err != nil {
		return err
	}
	tunnels, err := newAddresses(s.tunnelAddress)
	if err != nil {
		return fmt.Errorf("parse --tunnels: %w", err)
	}
	var cloudflare *simulator.Server
	s.options.Dial = s.dial
	s.options.OnCreate = func(t simulator.Tunnel) {
		l, err := tunnels.listen()
		if err != nil {
			log.Printf("failed to serve tunnel %s (%s): %v", t.Name, t.ID, err)
			return
		}
		cloudflare.Listen(t.ID, l)
		log.Printf("tunnel %s (%s) on http://%s", t.Name, t.ID, l.Addr())
	}
	cloudflare = simulator.New(s.options)
	defer cloudflare.Close()
	api, err := net.Listen("tcp", s.apiAddress)
	if err != nil {
		return fmt.Errorf("listen for the API: %w", err)
	}
	log.Printf("API on http://%s/client/v4", api.Addr())
	services := map[net.Listener]http.Handler{api: cloudflare.API()}
	if s.connectorAddress != "" {
		connectors, err := net.Listen("tcp", s.connectorAddress)
		if err != nil {
			return fmt.Errorf("listen for connectors: %w", err)
		}
		log.Printf("connectors on http://%s", connectors.Addr())
		services[connectors] = cloudflare.Edge()
	}
	return serve(ctx, services)
}

// serve serves each handler on its listener until the context is canceled or a
// server fails.
func serve(ctx context.Context, services map[net.Listener]http.Handler) error {
	ended := make(chan error, len(services))
	for l, handler := range services {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		defer func() { _ = server.Close() }() // close connections that are still open
		go func() { ended <- server.Serve(l) }()
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// dial connects to an origin, at its mapped address if it has one.
func (s settings) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if mapped, ok := s.origins[address]; ok {
		address = mapped
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// addresses allocates an address for each tunnel.
type addresses struct {
	host string
	mu   sync.Mutex
	port int // for the next tunnel, or 0 for any
}

func newAddresses(first string) (*addresses, error) {
	host, text, err := net.SplitHostPort(first)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	return &addresses{host: host, port: int(port)}, nil
}

func (a *addresses) listen() (net.Listener, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	address := net.JoinHostPort(a.host, strconv.Itoa(a.port))
	if a.port != 0 {
		a.port++
	}
	return net.Listen("tcp", address)
}
