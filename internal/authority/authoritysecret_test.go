package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// Two processes that create the Secret at once use the same authority.
func TestTwoProcessesCreateOneAuthority(t *testing.T) {
	c := newCluster(t)
	first, second := c.authority(), c.authority()
	object := c.tunnel("shared")
	c.beforeWrite = func() {
		c.beforeWrite = func() {}
		c.write(second, object)
	}
	c.write(first, object)
	for _, a := range []*Authority{first, second, c.authority()} {
		c.wantCurrent(a, object, true)
		c.wantAccepted(a, object)
	}
}

// A process that is behind adopts a change by another process instead of overwriting
// it.
func TestConflictingRotationIsAdopted(t *testing.T) {
	c := newCluster(t)
	first, second := c.authority(), c.authority()
	c.write(first, c.tunnel("shared"))
	c.maintain(second)
	c.now = c.now.Add(authorityLifetime - successorLead)
	var want *x509.Certificate
	c.beforeWrite = func() {
		c.beforeWrite = func() {}
		c.maintain(second)
		want = c.authorities().next.certificate
	}
	c.maintain(first)
	for _, a := range []*Authority{first, second} {
		c.maintain(a)
		if got := a.stored.Load().next; got == nil || !got.certificate.Equal(want) {
			t.Error("the processes have different successors")
		}
	}
}

// If another process creates a successor while this one checks the Secrets of Tunnels,
// they do not contain it yet.
func TestDistributionIsThatOfTheCheckedBundle(t *testing.T) {
	c := newCluster(t)
	first, second, object := c.authority(), c.authority(), c.tunnel("shared")
	c.write(first, object)
	c.maintain(second)
	c.now = c.now.Add(authorityLifetime - successorLead - time.Second)
	c.write(first, object) // its metadata has changed for both processes
	c.beforeRead = func() {
		c.beforeRead = func() {}
		c.now = c.now.Add(time.Second)
		c.maintain(second)
	}
	c.maintain(first)
	if s := c.authorities(); s.next == nil || !s.nextSince.IsZero() {
		t.Errorf("the bundles contain the successor since %s, want none", s.nextSince)
	}
}

// damages are edits of the Secret with the authorities that make it unusable.
func damages(t *testing.T) map[string]func(*corev1.Secret) {
	other, err := newSigner(startTime)
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey, err := other.encode()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(*corev1.Secret){
		"emptied":             func(s *corev1.Secret) { s.Data = nil },
		"no key":              func(s *corev1.Secret) { delete(s.Data, activeKeyKey) },
		"no certificate":      func(s *corev1.Secret) { delete(s.Data, activeCertificateKey) },
		"cut key":             func(s *corev1.Secret) { s.Data[activeKeyKey] = s.Data[activeKeyKey][:80] },
		"other key":           func(s *corev1.Secret) { s.Data[activeKeyKey] = otherKey },
		"two certificates":    func(s *corev1.Secret) { s.Data[activeCertificateKey] = bytes.Repeat(s.Data[activeCertificateKey], 2) },
		"text as certificate": func(s *corev1.Secret) { s.Data[activeCertificateKey] = []byte("x") },
		// The active authority is intact in the following ones.
		"incomplete next":  func(s *corev1.Secret) { s.Data[nextKeyKey] = otherKey },
		"text as previous": func(s *corev1.Secret) { s.Data[previousKey] = []byte("x") },
		"only a time":      func(s *corev1.Secret) { s.Data[previousUntilKey] = []byte(startTime.Format(time.RFC3339)) },
		"text as time":     func(s *corev1.Secret) { s.Data[previousUntilKey] = []byte("x") },
	}
}

// The leader restores a deleted or damaged Secret from memory.
func TestLeaderRestoresTheAuthority(t *testing.T) {
	edits := damages(t)
	edits["deleted"] = nil
	edits["unknown key"] = func(s *corev1.Secret) { s.Data["x"] = []byte("y") }
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			a, object := c.authority(), c.tunnel("shared")
			c.write(a, object)
			c.maintain(a)
			before := c.authoritySecret()
			if edit == nil {
				c.delete(c.authoritySecret())
			} else {
				c.change(c.authoritySecret(), edit)
			}
			if due := c.maintain(a); len(due) > 0 {
				t.Errorf("%v are due, want none", due)
			}
			if after := c.authoritySecret(); after == nil || (name != "unknown key" && !sameData(after.Data, before.Data)) {
				t.Error("the Secret is not restored")
			}
			restarted := c.authority()
			c.wantCurrent(restarted, object, true)
			c.wantAccepted(restarted, object)
		})
	}
}

func sameData(x, y map[string][]byte) bool {
	if len(x) != len(y) {
		return false
	}
	for key := range x {
		if !bytes.Equal(x[key], y[key]) {
			return false
		}
	}
	return true
}

// If the Secret is deleted or its active authority is damaged while no controller runs,
// there is a new authority, and the Secrets of all Tunnels are written again.
func TestAuthorityIsReplacedAfterARestart(t *testing.T) {
	edits := damages(t)
	edits["deleted"] = nil
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			object := c.tunnel("shared")
			c.write(c.authority(), object)
			old := c.files(object)
			if edit == nil {
				c.delete(c.authoritySecret())
			} else {
				c.change(c.authoritySecret(), edit)
			}
			a, wantDue := c.authority(), 1
			if intact, _ := parseData(c.dataOfAuthority()); intact != nil {
				wantDue = 0
			}
			if due := c.maintain(a); len(due) != wantDue {
				t.Errorf("%d Tunnels are due, want %d", len(due), wantDue)
			}
			if _, err := connect(t, a, certificateIn(t, old), c.files(object)[envoy.CAFile]); (err == nil) != (wantDue == 0) {
				t.Errorf("a connection with the old certificate has the error %v", err)
			}
			c.write(a, object)
			c.wantCurrent(a, object, true)
			c.wantAccepted(a, object)
			if due := c.maintain(a); len(due) > 0 {
				t.Errorf("%v are due again", due)
			}
		})
	}
}

// If something else is in the Secret with that name, it is not overwritten.
func TestAuthorityDoesNotOverwriteAnotherSecret(t *testing.T) {
	c := newCluster(t)
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: authorityName}, Data: map[string][]byte{"x": []byte("y")}}
	if err := c.kube.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	a, object := c.authority(), c.tunnel("shared")
	if err := a.Write(t.Context(), object); err == nil || !strings.Contains(err.Error(), "does not belong to this controller; delete it") {
		t.Errorf("the error is %v, want an error that names the Secret", err)
	}
	if got := c.authoritySecret().Data; !sameData(got, other.Data) {
		t.Error("the Secret is overwritten")
	}
	c.delete(other)
	c.write(a, object)
	c.wantAccepted(a, object)
}

// An administrator can replace the authority with a valid one.
func TestReplacedSecretIsAdopted(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	c.write(a, object)
	c.maintain(a)
	c.wantAccepted(a, object) // with a certificate from the old authority, which stays in memory
	replacement, err := newAuthorities(c.now)
	if err != nil {
		t.Fatal(err)
	}
	data, err := replacement.encode()
	if err != nil {
		t.Fatal(err)
	}
	c.change(c.authoritySecret(), func(s *corev1.Secret) { s.Data = data })
	if due := c.maintain(a); len(due) != 1 {
		t.Errorf("%v are due, want the Tunnel", due)
	}
	c.write(a, object)
	c.wantAccepted(a, object)
	if !c.authorities().active.certificate.Equal(replacement.active.certificate) {
		t.Error("the leader restored the old authority")
	}
}

// However the Secret is damaged, no log line and no error contains a private key.
func TestLogsAndErrorsContainNoKey(t *testing.T) {
	var mu sync.Mutex
	var output strings.Builder
	logger := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		output.WriteString(prefix + args + "\n")
	}, funcr.Options{})
	ctx := log.IntoContext(t.Context(), logger)
	for name, edit := range damages(t) {
		for _, restart := range []bool{false, true} {
			c := newCluster(t)
			a, object := c.authority(), c.tunnel("shared")
			c.write(a, object)
			key := string(c.authoritySecret().Data[activeKeyKey])
			secret := strings.Split(key, "\n")[1]
			c.change(c.authoritySecret(), edit)
			if restart {
				a = c.authority()
			}
			_, err := parseData(c.authoritySecret().Data)
			if err == nil {
				t.Fatalf("%s: the Secret is not damaged", name)
			}
			if err := a.maintain(ctx); err != nil {
				t.Fatal(err)
			}
			if text := output.String() + err.Error(); strings.Contains(text, secret[:20]) || strings.Contains(text, "PRIVATE KEY") {
				t.Errorf("%s: the key is in %s", name, text)
			}
		}
	}
	if !strings.Contains(output.String(), "restoring the damaged certificate authority") {
		t.Errorf("the log is %q, want a line for each damage", output.String())
	}
}

// While the API server does not respond, connections and metrics do not wait for it, and a
// caller that gives up does not affect the others.
func TestNothingWaitsForTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		unblock := make(chan struct{})
		o := c.options()
		o.Live = interceptor.NewClient(c.kube, interceptor.Funcs{
			Get: func(ctx context.Context, k client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				select {
				case <-unblock:
				case <-ctx.Done():
					return ctx.Err()
				}
				return k.Get(ctx, key, object, options...)
			},
		})
		a := New(o)
		impatient, cancel := context.WithCancel(t.Context())
		results := make(chan error, 3)
		for _, ctx := range []context.Context{impatient, t.Context(), t.Context()} {
			go func() {
				_, err := a.current(ctx)
				results <- err
			}()
			synctest.Wait()
		}
		if got := a.Expiry(); got != (Expiry{}) {
			t.Errorf("the expiry is %+v, want none", got)
		}
		cancel()
		if err := <-results; err == nil {
			t.Error("a canceled caller gets no error")
		}
		close(unblock)
		for range 2 {
			if err := <-results; err != nil {
				t.Errorf("a caller that waits gets the error %v", err)
			}
		}
	})
}

// The leader restores the Secret within a minute, calls Due within an hour, and ends
// with its context.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var mu sync.Mutex
		due := 0
		o := c.options()
		o.Now, o.Due = time.Now, func(*v1alpha1.Tunnel) {
			mu.Lock()
			defer mu.Unlock()
			due++
		}
		a, object := New(o), c.tunnel("shared")
		c.write(a, object)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Start(ctx) }()
		synctest.Wait()
		c.delete(c.authoritySecret())
		time.Sleep(time.Minute) //nolint:forbidigo // the time is virtual
		synctest.Wait()
		if c.authoritySecret() == nil {
			t.Error("the Secret is not restored within a minute")
		}
		c.change(c.secret(secretKey(object)), func(s *corev1.Secret) { s.Data = nil })
		time.Sleep(time.Hour) //nolint:forbidigo // the time is virtual
		synctest.Wait()
		mu.Lock()
		if due != 1 {
			t.Errorf("Due was called %d times in an hour, want once", due)
		}
		mu.Unlock()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start returns %v, want nil", err)
		}
	})
}

// Handshakes, writes and checks run concurrently while the authorities rotate.
func TestConcurrentUse(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	c.write(a, object)
	files := c.files(object)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := connect(t, a, certificateIn(t, files), files[envoy.CAFile]); err != nil {
				t.Errorf("an Envoy cannot connect: %v", err)
			}
		})
		group.Go(func() {
			if err := a.Write(t.Context(), object); err != nil {
				t.Error(err)
			}
			if _, err := a.IsCurrent(t.Context(), object); err != nil {
				t.Error(err)
			}
			a.Expiry()
		})
	}
	group.Go(func() { c.maintain(a) })
	group.Wait()
}

// Without Envoys there is no Secret, neither after a leader has started nor after a
// connection to the server's port. Once it exists, a leader maintains it.
func TestNothingIsCreatedWithoutEnvoys(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	if due := c.maintain(a); len(due) > 0 {
		t.Errorf("the Secrets of %q are due, want none", due)
	}
	if _, err := connect(t, a, &tls.Certificate{}, nil); err == nil {
		t.Error("a server accepts a client without a certificate")
	}
	if c.authoritySecret() != nil {
		t.Error("the Secret exists although no Tunnel needs a certificate")
	}
	c.write(a, object)
	if c.authoritySecret() == nil {
		t.Error("the Secret does not exist after the first certificate")
	}
}
