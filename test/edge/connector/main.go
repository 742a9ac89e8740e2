// Command connector stands in for cloudflared where the simulator stands in for
// Cloudflare. It takes the command line that connectors are deployed with and
// refuses any other, connects to the simulator's edge with the tunnel's token,
// and says on its metrics address whether it is ready.
//
// It carries no traffic: the simulator's data path reaches the origins by
// itself. What is set for traffic, such as the transport and the grace period,
// is checked and has no effect.
//
// Its environment: TUNNEL_TOKEN is the token, as for cloudflared. TUNNEL_EDGE is
// the http:// URL of the simulator's edge. METRICS_PORT, when set, replaces the
// port of --metrics, and the host by 127.0.0.1, so that several connectors can
// run on one machine; 0 is any free port, which the log tells.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv); err != nil {
		log.Fatal(err)
	}
}

// run is one connector until the context ends.
func run(ctx context.Context, arguments []string, getenv func(string) string) error {
	s, err := parse(arguments, getenv)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.metrics)
	if err != nil {
		return fmt.Errorf("listen for metrics: %w", err)
	}
	log.Printf("metrics on http://%s", l.Addr())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newConnector(s)
	server := &http.Server{Handler: c.metrics(), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(l)
		cancel()
	}()
	c.run(ctx)
	select {
	case err := <-served:
		return fmt.Errorf("serve metrics: %w", err)
	default:
		return server.Close()
	}
}

// connectionsPerConnector is how many cloudflared has when all is well.
const connectionsPerConnector = 4

// metrics answers as the metrics address of cloudflared does, as far as probes
// ask it.
func (c *connector) metrics() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		body := struct {
			Status           int    `json:"status"`
			ReadyConnections int    `json:"readyConnections"`
			ConnectorID      string `json:"connectorId"`
		}{http.StatusServiceUnavailable, 0, c.id}
		if c.connected.Load() {
			body.Status, body.ReadyConnections = http.StatusOK, connectionsPerConnector
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(body.Status)
		_ = json.NewEncoder(w).Encode(body) // a probe that left needs no answer
	})
	return mux
}
