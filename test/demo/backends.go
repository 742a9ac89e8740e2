package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// backends are HTTP servers that replace the pods in the samples. Each Service has one
// server for connectors, which starts with the first connection to the Service, and one on
// each of its own addresses for Envoys.
type backends struct {
	mu        sync.Mutex
	servers   map[string]*httptest.Server // by Service
	listening map[string]listeningBackend // by address
}

// listeningBackend is a server on the address of a Service.
type listeningBackend struct {
	service string
	server  *httptest.Server
}

func newBackends() *backends {
	return &backends{servers: map[string]*httptest.Server{}, listening: map[string]listeningBackend{}}
}

// dial connects to a Service's backend. address contains the Service's DNS name in the
// cluster.
func (b *backends) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	service, ok := strings.CutSuffix(host, ".svc.cluster.local")
	if !ok {
		return nil, fmt.Errorf("%s is not a Service of the cluster", host)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, b.server(service).Listener.Addr().String())
}

func (b *backends) server(service string) *httptest.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	server := b.servers[service]
	if server == nil {
		server = httptest.NewServer(answer(service))
		b.servers[service] = server
	}
	return server
}

// listen makes the backends of exactly these Services listen. services has the Services by
// address.
func (b *backends) listen(services map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for address, backend := range b.listening {
		if services[address] != backend.service {
			backend.server.Close()
			delete(b.listening, address)
		}
	}
	var errs []error
	for address, service := range services {
		if b.listening[address].server != nil {
			continue
		}
		server, err := serve(service, address)
		if err != nil {
			errs = append(errs, fmt.Errorf("listen for Service %s: %w", service, err))
			continue
		}
		b.listening[address] = listeningBackend{service, server}
	}
	return errors.Join(errs...)
}

// serve starts a Service's backend on the address.
func serve(service, address string) (*httptest.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := httptest.NewUnstartedServer(answer(service))
	server.Listener.Close() //nolint:errcheck,gosec // it has accepted nothing
	server.Listener = listener
	server.Start()
	return server, nil
}

// follow makes the backends of all Services listen on their own addresses, which Envoys
// connect to, until the context is canceled.
func (b *backends) follow(ctx context.Context, kube client.Client) {
	repeat(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		var services corev1.ServiceList
		if err := kube.List(ctx, &services); err != nil {
			return err
		}
		return b.listen(addressesOf(services.Items))
	})
}

// addressesOf returns the Services by address. It leaves out the API server's Service, and
// Services without an address.
func addressesOf(services []corev1.Service) map[string]string {
	all := map[string]string{}
	for _, service := range services {
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone || service.Labels["component"] == "apiserver" {
			continue
		}
		for _, port := range service.Spec.Ports {
			if port.Protocol == corev1.ProtocolTCP {
				all[net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port)))] = service.Name + "." + service.Namespace
			}
		}
	}
	return all
}

// answer returns a handler that responds with the Service name.
func answer(service string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "%s answers %s %s%s\n", service, r.Method, r.Host, r.URL.Path) // #nosec G705 -- plain text
	})
}

func (b *backends) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, server := range b.servers {
		server.Close()
	}
	for _, backend := range b.listening {
		backend.server.Close()
	}
}
