// Command connector replaces cloudflared in tests that replace Cloudflare with the
// simulator. It accepts only the command line that connectors are deployed with, connects
// to the simulator's edge with the tunnel's token, and reports on its metrics address
// whether it is ready. Its command ready asks a running connector, as a probe in the
// container does.
//
// It forwards no traffic: the simulator's data path connects to the origins directly.
// With DialConnector, it does so only while a connector is connected, and a request ends
// with the connector that carries it. The transport is validated but has no effect. On
// SIGTERM the connector unregisters and waits for requests in flight to end, up to the
// grace period.
//
// It reads these environment variables:
//
//   - TUNNEL_TOKEN is the tunnel token, as for cloudflared.
//   - TUNNEL_EDGE is the http:// URL of the simulator's edge.
//   - HOSTNAME is the host name of the connector's pod, as in every container.
//   - METRICS_PORT, if set, replaces the address of --metrics with this port on
//     METRICS_HOST, which is 127.0.0.1 by default, so that several connectors can run on one
//     machine. 0 selects any free port, and the log contains its number.
//
// The command ready reads only METRICS_PORT and METRICS_HOST.
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

// run runs the command in the arguments.
func run(ctx context.Context, arguments []string, getenv func(string) string) error {
	s, err := parse(arguments, getenv)
	switch {
	case err != nil:
		return err
	case s.command == readyCommand:
		return checkReady(ctx, s.metrics)
	default:
		return runConnector(ctx, s)
	}
}

// checkReady returns an error unless the connector with the metrics address is
// ready.
func checkReady(ctx context.Context, metrics string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/ready", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request) // #nosec G704 -- the command line sets the address
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", request.URL, response.Status)
	}
	return nil
}

// runConnector runs one connector until the context is canceled.
func runConnector(ctx context.Context, s settings) error {
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

// A healthy cloudflared has this many connections.
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
