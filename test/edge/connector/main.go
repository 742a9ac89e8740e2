// Command connector replaces cloudflared in tests that replace Cloudflare with the
// simulator. It accepts only the command line that connectors are deployed with,
// connects to the simulator's edge with the tunnel's token, and reports on its
// metrics address whether it is ready.
//
// It forwards no traffic: the data path of the simulator connects to the origins
// directly. The settings for traffic, such as the transport and the grace period,
// are validated but have no effect.
//
// It reads these environment variables:
//
//   - TUNNEL_TOKEN is the tunnel token, as for cloudflared.
//   - TUNNEL_EDGE is the http:// URL of the simulator's edge.
//   - METRICS_PORT, if set, replaces the address of --metrics with this port on
//     127.0.0.1, so that several connectors can run on one machine. 0 selects any
//     free port, and the log contains its number.
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

// run runs one connector until the context is canceled.
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

// connectionsPerConnector is the number of connections of a healthy cloudflared.
const connectionsPerConnector = 4

// metrics returns a handler for the metrics address. Of cloudflared's endpoints it
// serves only /ready, which probes use.
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
		_ = json.NewEncoder(w).Encode(body) // fails only if the probe has disconnected
	})
	return mux
}
