package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// visitors connect to hostnames as users on the Internet do.
type visitors struct {
	// addresses are the simulator's addresses by port. They are empty with Cloudflare.
	addresses map[string]string
	// resolver asks the zone's nameservers, so that no resolver between caches that
	// a hostname does not exist yet.
	resolver *net.Resolver
	// roots are the authorities that the simulator's certificate needs. Nil selects
	// the system's.
	roots *x509.CertPool
}

// dial connects to the address, which contains a hostname.
func (v *visitors) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Resolver: v.resolver, Timeout: 20 * time.Second}
	if replacement := v.addresses[port]; replacement != "" {
		return dialer.DialContext(ctx, network, replacement)
	}
	// The dot keeps the resolver from appending the machine's search domains.
	return dialer.DialContext(ctx, network, net.JoinHostPort(strings.TrimSuffix(host, ".")+".", port))
}

// tls returns the configuration for connections to the hostname.
func (v *visitors) tls(host string) *tls.Config {
	return &tls.Config{RootCAs: v.roots, ServerName: host, MinVersion: tls.VersionTLS12}
}

// client returns a client with its own connections that follows no redirect.
func (v *visitors) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: v.dial, TLSClientConfig: v.tls(""), ForceAttemptHTTP2: true, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is a response to a visitor.
type answer struct {
	status int
	proto  string
	header http.Header
	body   string
}

// String returns what a message says about the answer.
func (a answer) String() string { return fmt.Sprintf("status %d: %.100q", a.status, a.body) }

// get requests the URL on a new connection.
func (v *visitors) get(ctx context.Context, url string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client := v.client()
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return answer{response.StatusCode, response.Proto, response.Header, string(body)}, err
}

// nameservers returns a resolver that asks the zone's nameservers.
func nameservers(ctx context.Context, zone string) (*net.Resolver, error) {
	servers, err := net.DefaultResolver.LookupNS(ctx, zone)
	if err != nil {
		return nil, fmt.Errorf("look up the nameservers of the zone: %w", err)
	}
	var next atomic.Uint64
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var dialer net.Dialer
		server := servers[next.Add(1)%uint64(len(servers))]
		return dialer.DialContext(ctx, network, net.JoinHostPort(server.Host, "53"))
	}}, nil
}

// headerNames returns the names in the header.
func headerNames(header http.Header) []string { return slices.Collect(maps.Keys(header)) }
