package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

const (
	// probeHeader marks a request that gets no token.
	probeHeader = "X-Probe"
	// probePath is a path of the backend, whose response begins with it.
	probePath = "/fast"
	// probeInterval is the time between two probes for a hostname.
	probeInterval = 5 * time.Millisecond
)

// visitors send requests through the tunnels, from behind the edge, where only the connectors
// check tokens.
type visitors struct {
	bed       *bed
	addresses map[string]string // where the tunnel is served, by Gateway
	loads     map[string]*load.Load
	results   map[string]load.Result
	probing   sync.WaitGroup
	stop      context.CancelFunc
	ctx       context.Context

	mu     sync.Mutex
	tokens map[string]string // by audience
	probes map[string]map[int]int
	leaks  []string
}

// newVisitors returns visitors for the tunnels, whose IDs are by Gateway.
func newVisitors(b *bed, tunnels map[string]string) (*visitors, error) {
	v := &visitors{
		bed: b, addresses: map[string]string{}, loads: map[string]*load.Load{}, results: map[string]load.Result{},
		tokens: map[string]string{}, probes: map[string]map[int]int{},
	}
	v.ctx, v.stop = context.WithCancel(context.Background())
	for gateway, id := range tunnels {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		v.addresses[gateway] = listener.Addr().String()
		b.serve(listener, v.handler(b.edge.Tunnel(id)))
	}
	return v, nil
}

// handler adds the token for the host to all requests but the probes.
func (v *visitors) handler(tunnel http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(probeHeader) == "" {
			if token := v.token(r.Host); token != "" {
				r.Header.Set("Cf-Access-Jwt-Assertion", token)
			}
		}
		r.Header.Del(probeHeader)
		tunnel.ServeHTTP(w, r)
	})
}

// token returns the token with which the host is open, or an empty text.
func (v *visitors) token(host string) string {
	label, _, _ := strings.Cut(host, ".")
	aud := audience
	switch label {
	case adminLabel:
	case staffLabel:
		app, ok := v.bed.applications.Covering(account, host, "/")
		if !ok {
			return ""
		}
		aud = app.AUD
	default:
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tokens[aud] == "" {
		v.tokens[aud] = simulator.Claims{Team: teamName, Audience: []string{aud}, Email: "ada@" + domain}.Sign()
	}
	return v.tokens[aud]
}

// load starts a load for each Gateway's hostname.
func (v *visitors) load(label string) {
	for gateway, address := range v.addresses {
		host := hostname(label, gateway)
		v.loads[host] = load.Start(load.Options{Address: address, Host: host, Connections: 1})
	}
}

// endLoad ends the load for each Gateway's hostname.
func (v *visitors) endLoad(label string) {
	for gateway := range v.addresses {
		host := hostname(label, gateway)
		v.results[host] = v.loads[host].Stop()
		delete(v.loads, host)
	}
}

// probe sends requests without a token, and with the token of another application, for the
// Gateways' protected hostname until the visitors stop.
func (v *visitors) probe(label string) {
	for gateway, address := range v.addresses {
		host := hostname(label, gateway)
		v.probing.Go(func() {
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := 0; v.ctx.Err() == nil; i++ {
				forms := []string{host, strings.ToUpper(host), host + ".", host + ":443"}
				v.record(host, v.ask(client, address, forms[i%len(forms)], i%3 == 0))
				pause(v.ctx, probeInterval)
			}
		})
	}
}

// ask sends a probe and returns the status, or -1 if the backend answered, and 0 without a
// response.
func (v *visitors) ask(client *http.Client, address, host string, withOtherToken bool) int {
	request, err := http.NewRequestWithContext(v.ctx, http.MethodGet, "http://"+address+probePath, http.NoBody)
	if err != nil {
		return 0
	}
	request.Host = host
	request.Header.Set(probeHeader, "1")
	if withOtherToken {
		request.Header.Set("Cf-Access-Jwt-Assertion", v.otherToken())
	}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err == nil && strings.HasPrefix(string(text), probePath) {
		return -1
	}
	return response.StatusCode
}

// otherToken returns a valid token of the team for an application without hostnames.
func (v *visitors) otherToken() string {
	const other = "other"
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tokens[other] == "" {
		v.tokens[other] = simulator.Claims{Team: teamName, Audience: []string{other}, Email: "ada@" + domain}.Sign()
	}
	return v.tokens[other]
}

func (v *visitors) record(host string, status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.probes[host] == nil {
		v.probes[host] = map[int]int{}
	}
	v.probes[host][status]++
	if status == -1 && len(v.leaks) < 10 {
		v.leaks = append(v.leaks, fmt.Sprintf("%s %s is open without its token", time.Now().Format(time.TimeOnly), host))
	}
}

// get returns the status of a request with the token.
func (v *visitors) get(ctx context.Context, label, gateway string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.addresses[gateway]+probePath, http.NoBody)
	if err != nil {
		return 0
	}
	request.Host = hostname(label, gateway)
	response, err := http.DefaultClient.Do(request) // #nosec G704 -- on this machine
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// end stops all visitors, prints what happened, and returns an error if a request failed or a
// protected hostname was open.
func (v *visitors) end() error {
	v.stop()
	v.probing.Wait()
	var errs []error
	for _, host := range slices.Sorted(maps.Keys(v.loads)) {
		v.results[host] = v.loads[host].Stop()
	}
	for _, host := range slices.Sorted(maps.Keys(v.results)) {
		result := v.results[host]
		fmt.Printf("    %s: %s\n", host, result)
		if result.Failed > 0 || result.Unopened > 0 {
			errs = append(errs, fmt.Errorf("%s: %s", host, strings.Join(failures(result), "; ")))
		}
	}
	for _, host := range slices.Sorted(maps.Keys(v.probes)) {
		fmt.Printf("    %s without its token: answers by status %v\n", host, v.probes[host])
	}
	for _, leak := range v.leaks {
		errs = append(errs, errors.New(leak))
	}
	return errors.Join(errs...)
}

// failures returns the first failures, without the long-lived connections that ended in use:
// they end with the connector that carries them.
func failures(r load.Result) []string {
	found := slices.DeleteFunc(slices.Clone(r.Failures), func(f string) bool {
		return strings.Contains(f, "s stream: ") && !strings.Contains(f, "not opened") || strings.Contains(f, "s WebSocket: ") && !strings.Contains(f, "not opened")
	})
	return found[:min(len(found), 10)]
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
