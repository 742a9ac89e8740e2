package xds_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/authority"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

var (
	shared = types.NamespacedName{Namespace: "infra", Name: "shared"}
	other  = types.NamespacedName{Namespace: "infra", Name: "other"}
)

const (
	sharedTunnel = types.UID("uid-of-shared")
	otherTunnel  = types.UID("uid-of-other")
)

type ca struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newCA(t *testing.T) *ca {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return &ca{certificate, key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate that is valid for the given time from now.
func (c *ca) issue(t *testing.T, validity time.Duration, template x509.Certificate) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(2), time.Now().Add(-2*time.Hour), time.Now().Add(validity)
	encoded, err := x509.CreateCertificate(rand.Reader, &template, c.certificate, key.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key}
}

func (c *ca) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.certificate)
	return pool
}

func (c *ca) serverConfig(t *testing.T) *tls.Config {
	t.Helper()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.pool(),
		Certificates: []tls.Certificate{c.issue(t, 365*24*time.Hour, x509.Certificate{
			DNSNames: []string{envoy.ServerName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})},
	}
}

// client returns an Envoy certificate.
func (c *ca) client(t *testing.T, gateway types.NamespacedName, tunnel types.UID, validity time.Duration) tls.Certificate {
	t.Helper()
	id := &url.URL{Scheme: "tunnel-gateway", Host: "cluster", Path: fmt.Sprintf("/%s/%s", gateway, tunnel)}
	return c.issue(t, validity, x509.Certificate{URIs: []*url.URL{id}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// identify reads the certificates that client issues.
func identify(state tls.ConnectionState) (authority.Identity, error) {
	if len(state.PeerCertificates) == 0 || len(state.PeerCertificates[0].URIs) != 1 {
		return authority.Identity{}, errors.New("no identity")
	}
	id := state.PeerCertificates[0].URIs[0]
	var namespace, name, tunnel string
	for i, part := range slices.Collect(splitPath(id.Path)) {
		*[]*string{&namespace, &name, &tunnel}[i] = part
	}
	return authority.Identity{ClusterID: id.Host, Gateway: types.NamespacedName{Namespace: namespace, Name: name}, Tunnel: types.UID(tunnel)}, nil
}

// bed is a server in the fake time that testing/synctest provides.
type bed struct {
	*xds.Server
	*ca
	listener *bufconn.Listener
	metrics  *recorder
	// dialOptions are further client options.
	dialOptions []grpc.DialOption

	mu      sync.Mutex
	tunnels map[types.UID]bool
	changed []types.NamespacedName
	// subscribed counts the calls to Subscribed.
	subscribed int
	stop       func()
}

// withBed runs a test with a server for two Gateways.
func withBed(t *testing.T, test func(t *testing.T, b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bed{ca: newCA(t), tunnels: map[types.UID]bool{sharedTunnel: true, otherTunnel: true}, metrics: &recorder{}}
		b.start(t)
		defer func() { b.stop() }()
		test(t, b)
	})
}

// start starts a server that knows nothing, like a new leader.
func (b *bed) start(t *testing.T) {
	t.Helper()
	b.Server = xds.NewServer(xds.Options{
		TLS: b.serverConfig(t), Identify: identify, IsCurrent: b.isCurrent, Changed: b.recordChange, Subscribed: b.recordSubscription, Metrics: b.metrics,
	})
	b.listener = bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	server, listener := b.Server, b.listener
	go func() { done <- server.Serve(ctx, listener) }()
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with an error: %v", err)
		}
	}
}

// replaceLeader starts another server in place of the first one.
func (b *bed) replaceLeader(t *testing.T) {
	t.Helper()
	b.stop()
	b.start(t)
}

func (b *bed) isCurrent(id authority.Identity) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return id.ClusterID == "cluster" && b.tunnels[id.Tunnel]
}

func (b *bed) setCurrent(tunnel types.UID, isCurrent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tunnels[tunnel] = isCurrent
}

// recordChange also reads the state, which needs the server's lock.
func (b *bed) recordChange(gateway types.NamespacedName) {
	b.State(gateway)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = append(b.changed, gateway)
}

// recordSubscription also reads the subscriptions, which needs the server's lock.
func (b *bed) recordSubscription(gateway types.NamespacedName) {
	b.Subscriptions(gateway, envoy.EndpointSource{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribed++
}

// subscriptions counts the calls to Subscribed since the last time.
func (b *bed) subscriptions() int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.subscribed
	b.subscribed = 0
	return n
}

// changes counts the calls to Changed since the last time.
func (b *bed) changes() int {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.changed)
	b.changed = nil
	return n
}

func (b *bed) publish(t *testing.T, p xds.Publication) {
	t.Helper()
	if err := b.Publish(p); err != nil {
		t.Fatal(err)
	}
}

// wantState checks the state after everything that was sent has arrived.
func (b *bed) wantState(t *testing.T, want xds.State) {
	t.Helper()
	synctest.Wait()
	got := b.State(shared)
	got.Complete = want.Complete // has tests of its own
	if got != want {
		t.Errorf("the state is %+v, want %+v", got, want)
	}
}

// dial connects. The client calls awaitResume before it reads.
func (b *bed) dial(ctx context.Context, awaitResume func()) (net.Conn, error) {
	conn, err := b.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return &slowConn{conn, awaitResume}, nil
}

type slowConn struct {
	net.Conn
	awaitResume func()
}

func (c *slowConn) Read(p []byte) (int, error) {
	c.awaitResume()
	return c.Conn.Read(p)
}

func elapse(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}
