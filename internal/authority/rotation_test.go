package authority

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

const step = 23 * time.Hour / 2

// lagging is a Tunnel whose Secret is written, and whose files are updated, with a delay.
type lagging struct {
	tunnel *v1alpha1.Tunnel
	// writeDelay is how long it takes until a Secret that is due is written, and
	// fileDelay how long until the Envoys have its content.
	writeDelay, fileDelay time.Duration
	// writeAt is when the Secret is written next; zero if it is not due.
	writeAt time.Time
	files   []fileVersion
	// since contains when the Secret contained each authority for the first time.
	since map[string]time.Time
	// issued contains the certificates, by their serial numbers.
	issued map[string]*x509.Certificate
}

// fileVersion is a Secret's content that the Envoys have from a time on.
type fileVersion struct {
	at     time.Time
	client *x509.Certificate
	roots  *x509.CertPool
}

// current returns the files that the Envoys have.
func (l *lagging) current(now time.Time) fileVersion {
	for len(l.files) > 1 && !now.Before(l.files[1].at) {
		l.files = l.files[1:]
	}
	return l.files[0]
}

// At every time, each Envoy accepts the server and the server accepts each Envoy, although
// Secrets and files are up to 23 hours behind.
func TestRotationInterruptsNoEnvoy(t *testing.T) {
	c := newCluster(t)
	a := c.authority()
	var tunnels []*lagging
	for n, delay := range []struct{ write, file time.Duration }{{0, 0}, {2 * step, step}, {0, 2 * step}, {2 * step, 2 * step}} {
		l := &lagging{
			tunnel: c.tunnel(fmt.Sprintf("g%d", n)), writeDelay: delay.write, fileDelay: delay.file,
			since: map[string]time.Time{}, issued: map[string]*x509.Certificate{},
		}
		tunnels = append(tunnels, l)
		c.write(a, l.tunnel)
		l.observe(c, true)
	}
	servers := map[string]*x509.Certificate{}
	for end := c.now.Add(1600 * day); c.now.Before(end); c.now = c.now.Add(step) {
		due := c.maintain(a)
		for _, l := range tunnels {
			l.writeIfDue(c, a, slices.Contains(due, l.tunnel.Name))
		}
		server := wantMutualTrust(t, c, a, tunnels)
		servers[server.SerialNumber.String()] = server
		if t.Failed() {
			t.Fatalf("at %s", c.now)
		}
	}
	issuers := wantDistributed(t, tunnels, servers)
	for _, l := range tunnels {
		maps.Copy(issuers, wantDistributed(t, tunnels, l.issued))
		if got := len(l.issued); got < 1600/62 || got > 1600/58+1 {
			t.Errorf("%s had %d certificates in 1600 days, want one every 60 days", l.tunnel.Name, got)
		}
	}
	if len(issuers) != 3 {
		t.Errorf("%d authorities have signed, want 3", len(issuers))
	}
}

// writeIfDue writes the Secret after the delay.
func (l *lagging) writeIfDue(c *cluster, a *Authority, isDue bool) {
	if isDue && l.writeAt.IsZero() {
		l.writeAt = c.now.Add(l.writeDelay)
	}
	if !l.writeAt.IsZero() && !c.now.Before(l.writeAt) {
		l.writeAt = time.Time{}
		c.write(a, l.tunnel)
		l.observe(c, false)
	}
}

// observe records the Secret's content.
func (l *lagging) observe(c *cluster, isFirst bool) {
	data, delay := c.files(l.tunnel), l.fileDelay
	if isFirst {
		delay = 0 // no Envoy starts before it has the files
	}
	version := fileVersion{at: c.now.Add(delay), client: certificateIn(c.t, data).Leaf, roots: x509.NewCertPool()}
	version.roots.AppendCertsFromPEM(data[envoy.CAFile])
	l.files = append(l.files, version)
	l.issued[version.client.SerialNumber.String()] = version.client
	authorities, err := parseAuthorities(data[envoy.CAFile])
	if err != nil {
		c.t.Fatal(err)
	}
	for _, authority := range authorities {
		if name := authority.Subject.SerialNumber; l.since[name].IsZero() {
			l.since[name] = c.now
		}
	}
}

// wantMutualTrust checks the certificates of the server and all Envoys. It returns the
// server's.
func wantMutualTrust(t *testing.T, c *cluster, a *Authority, tunnels []*lagging) *x509.Certificate {
	t.Helper()
	config, err := a.ServerConfig().GetConfigForClient(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	server := config.Certificates[0].Leaf
	for _, l := range tunnels {
		files := l.current(c.now)
		if _, err := server.Verify(x509.VerifyOptions{DNSName: envoy.ServerName, Roots: files.roots, CurrentTime: c.now}); err != nil {
			t.Errorf("the Envoys of %s do not accept the server: %v", l.tunnel.Name, err)
		}
		chains, err := files.client.Verify(x509.VerifyOptions{Roots: config.ClientCAs, CurrentTime: c.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			t.Errorf("the server does not accept the Envoys of %s: %v", l.tunnel.Name, err)
			continue
		}
		if err := config.VerifyConnection(tls.ConnectionState{VerifiedChains: chains}); err != nil {
			t.Errorf("the server does not identify the Envoys of %s: %v", l.tunnel.Name, err)
		}
	}
	return server
}

// wantDistributed checks that the Secrets of all Tunnels contained an authority for 24
// hours before it issued a certificate, unless the authority is the first one. It
// returns the authorities.
func wantDistributed(t *testing.T, tunnels []*lagging, certificates map[string]*x509.Certificate) map[string]bool {
	t.Helper()
	issuers := map[string]bool{}
	for _, leaf := range certificates {
		issuer, issued := leaf.Issuer.SerialNumber, leaf.NotBefore.Add(clockSkew)
		issuers[issuer] = true
		for _, l := range tunnels {
			since, ok := l.since[issuer]
			if isFirst := since.Equal(startTime); !isFirst && (!ok || issued.Sub(since) < day) {
				t.Errorf("an authority signed at %s, but the Secret of %s contains it since %s", issued, l.tunnel.Name, since)
			}
		}
	}
	return issuers
}

// A successor that cannot reach every bundle takes over before the active authority ends.
func TestSuccessorDoesNotWaitForeverForABundle(t *testing.T) {
	c := newCluster(t)
	a, stuck := c.authority(), c.tunnel("stuck")
	c.write(a, stuck)
	first := c.authorities().active.certificate
	for ; c.now.Before(first.NotAfter.Add(-lifetime - day)); c.now = c.now.Add(7 * day) {
		c.maintain(a)
		if !c.authorities().active.certificate.Equal(first) {
			t.Fatalf("the successor took over %s before the end, although a bundle does not contain it", first.NotAfter.Sub(c.now))
		}
	}
	c.now = first.NotAfter.Add(-lifetime)
	c.maintain(a)
	if c.authorities().active.certificate.Equal(first) {
		t.Fatal("the successor has not taken over")
	}
	c.write(a, stuck)
	c.wantAccepted(a, stuck)
}

// A successor whose bundle was removed from a Secret by hand does not sign before it is
// back.
func TestSuccessorWaitsForABundleThatWasRemoved(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	c.write(a, object)
	first := c.authorities().active.certificate
	check := func() {
		c.now = c.now.Add(tunnelInterval)
		c.maintain(a)
	}
	c.now = c.now.Add(authorityLifetime - successorLead)
	check()
	c.write(a, object)
	check()
	c.now = c.now.Add(2 * day)
	set(envoy.CAFile, string(encodeCertificates(first)))(c, c.secret(secretKey(object)))
	check()
	if !c.authorities().active.certificate.Equal(first) {
		t.Error("the successor has taken over, although a bundle does not contain it")
	}
	c.write(a, object)
	check()
	if c.authorities().active.certificate.Equal(first) {
		t.Error("the successor has not taken over")
	}
	c.wantAccepted(a, object)
}

// A replaced authority loses its key at once, and leaves the bundle when no certificate
// from it is valid.
func TestReplacedAuthorityLeavesTheBundle(t *testing.T) {
	c := newCluster(t)
	a, tunnel := c.authority(), c.tunnel("shared")
	c.write(a, tunnel)
	first := c.authorities()
	advanceUntil := func(reached func(*authorities) bool) time.Time {
		for range 40000 {
			if len(c.maintain(a)) > 0 {
				c.write(a, tunnel)
			}
			if reached(c.authorities()) {
				return c.now
			}
			c.now = c.now.Add(time.Hour)
		}
		t.Fatal("the state is not reached")
		return time.Time{}
	}
	c.now = c.now.Add(authorityLifetime - successorLead - day)
	created := advanceUntil(func(s *authorities) bool { return s.next != nil })
	if want := startTime.Add(authorityLifetime - successorLead); !created.Equal(want) {
		t.Errorf("the successor is created at %s, want %s", created, want)
	}
	replaced := advanceUntil(func(s *authorities) bool { return len(s.previous) > 0 })
	if wait := replaced.Sub(created); wait < day || wait > day+3*time.Hour {
		t.Errorf("the successor took over after %s, want 24h and a few checks", wait)
	}
	if _, key, err := first.active.encode(); err != nil || contains(c.authoritySecret().Data, key) {
		t.Errorf("the Secret contains the key of the replaced authority (%v)", err)
	}
	left := advanceUntil(func(s *authorities) bool { return len(s.previous) == 0 })
	if after := left.Sub(replaced); after < lifetime || after > lifetime+day+time.Hour {
		t.Errorf("the replaced authority stays for %s, want 91 days", after)
	}
	c.write(a, tunnel)
	c.wantAccepted(a, tunnel)
	if n := len(c.authorities().trusted()); n != 1 {
		t.Errorf("the bundle contains %d authorities, want 1", n)
	}
}

func contains(data map[string][]byte, value []byte) bool {
	for _, found := range data {
		if string(found) == string(value) {
			return true
		}
	}
	return false
}

// After the clock has jumped, everything is valid again after one check.
func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{
		"forward within the lifetime": 61 * day, "forward to the successor's time": 2*365*day + day, "forward to the last days": authorityLifetime - 5*day,
		"forward beyond the end": 4 * 365 * day, "back by minutes": -30 * time.Minute, "back by years": -2 * 365 * day,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			a, tunnel := c.authority(), c.tunnel("shared")
			c.write(a, tunnel)
			for _, d := range []time.Duration{jump, -jump} { // the clock also returns
				c.now = c.now.Add(d)
				c.maintain(a)
				c.write(a, tunnel)
				c.wantCurrent(a, tunnel, true)
				c.wantAccepted(a, tunnel)
				if due := c.maintain(a); len(due) > 0 {
					t.Errorf("%v are due again", due)
				}
			}
			restarted := c.authority()
			c.wantAccepted(restarted, tunnel)
		})
	}
}

// The clock jumps while a successor is distributed: it waits again.
func TestClockJumpsBackDuringDistribution(t *testing.T) {
	c := newCluster(t)
	a, tunnel := c.authority(), c.tunnel("shared")
	c.write(a, tunnel)
	first := c.authorities().active.certificate
	c.now = c.now.Add(authorityLifetime - successorLead)
	c.maintain(a)
	c.write(a, tunnel)
	c.now = c.now.Add(tunnelInterval)
	c.maintain(a)
	if c.authorities().nextSince.IsZero() {
		t.Fatal("the distribution is not recorded")
	}
	c.now = c.now.Add(-2 * time.Hour)
	c.maintain(a)
	if s := c.authorities(); s.next == nil || s.nextSince.After(c.now) || !s.active.certificate.Equal(first) {
		t.Errorf("the bundles contain the successor since %s, at %s", s.nextSince, c.now)
	}
	c.wantAccepted(a, tunnel)
}
