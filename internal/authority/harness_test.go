package authority

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

const (
	namespace       = "tunnel-gateway"
	authorityName   = "tunnel-gateway-xds-ca"
	clusterID       = "prod-eu"
	gatewayOfTunnel = "infra"
)

var startTime = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// cluster simulates an API server and a clock.
type cluster struct {
	t    *testing.T
	kube client.WithWatch
	now  time.Time
	// beforeWrite is called before the Secret with the authorities is written.
	beforeWrite func()
	// beforeRead is called before a Tunnel's Secret is read from the API server.
	beforeRead func()
	// failReads makes reads from the API server fail.
	failReads bool
	// reads counts how often Secrets are read from the API server, writes how often
	// they are written.
	reads, writes atomic.Int64
	due           []string
}

func newCluster(t *testing.T) *cluster {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{
		t: t, now: startTime, beforeWrite: func() {}, beforeRead: func() {},
		kube: fake.NewClientBuilder().WithScheme(scheme).Build(),
	}
}

// authority returns the Authority in a new process.
func (c *cluster) authority() *Authority {
	return New(c.options())
}

func (c *cluster) options() Options {
	return Options{
		Client: c.client(), Metadata: c.kube, Live: c.live(), Namespace: namespace, Name: authorityName, ClusterID: clusterID,
		Now: func() time.Time { return c.now }, FieldOwner: "tunnel-gateway",
		Due: func(t *v1alpha1.Tunnel) { c.due = append(c.due, t.Name) },
	}
}

func (c *cluster) client() client.Client {
	write := func(object string, do func() error) error {
		if object == authorityName {
			c.beforeWrite()
		}
		c.writes.Add(1)
		return do()
	}
	return interceptor.NewClient(c.kube, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("a Secret is read through the cache")
		},
		Create: func(ctx context.Context, k client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return write(o.GetName(), func() error { return k.Create(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, k client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return write(o.GetName(), func() error { return k.Patch(ctx, o, p, options...) })
		},
		Apply: func(ctx context.Context, k client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return write("", func() error { return k.Apply(ctx, o, options...) })
		},
	})
}

// live returns the reader that reads from the API server.
func (c *cluster) live() client.Reader {
	return interceptor.NewClient(c.kube, interceptor.Funcs{
		Get: func(ctx context.Context, k client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			c.reads.Add(1)
			if key.Name != authorityName {
				c.beforeRead()
			}
			if c.failReads {
				return errors.New("the API server does not respond")
			}
			return k.Get(ctx, key, o, options...)
		},
	})
}

// tunnel creates a Tunnel for the Gateway infra/<name>.
func (c *cluster) tunnel(name string) *v1alpha1.Tunnel {
	c.t.Helper()
	t := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: gatewayOfTunnel + "." + name, UID: types.UID("uid-of-" + name)}}
	t.Spec.Gateway = v1alpha1.GatewayReference{Namespace: gatewayOfTunnel, Name: name}
	t.Status.DataPlane = v1alpha1.DataPlaneEnvoy
	if err := c.kube.Create(c.t.Context(), t); err != nil {
		c.t.Fatal(err)
	}
	return t
}

// secret returns a Secret, or nil if it does not exist.
func (c *cluster) secret(key types.NamespacedName) *corev1.Secret {
	c.t.Helper()
	secret := &corev1.Secret{}
	err := c.kube.Get(c.t.Context(), key, secret)
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return secret
}

func (c *cluster) authoritySecret() *corev1.Secret {
	c.t.Helper()
	return c.secret(types.NamespacedName{Namespace: namespace, Name: authorityName})
}

// dataOfAuthority returns the Secret's data, or nil if it does not exist.
func (c *cluster) dataOfAuthority() map[string][]byte {
	c.t.Helper()
	if secret := c.authoritySecret(); secret != nil {
		return secret.Data
	}
	return nil
}

// authorities returns the authorities in the Secret.
func (c *cluster) authorities() *authorities {
	c.t.Helper()
	s, err := parseData(c.authoritySecret().Data)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// change updates a Secret.
func (c *cluster) change(secret *corev1.Secret, edit func(*corev1.Secret)) {
	c.t.Helper()
	edit(secret)
	if err := c.kube.Update(c.t.Context(), secret); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) delete(object client.Object) {
	c.t.Helper()
	if err := c.kube.Delete(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// write writes a Tunnel's Secret.
func (c *cluster) write(a *Authority, t *v1alpha1.Tunnel) {
	c.t.Helper()
	if err := a.Write(c.t.Context(), t); err != nil {
		c.t.Fatal(err)
	}
}

// maintain lets the leader check the Secrets, and returns the Tunnels that are due.
func (c *cluster) maintain(a *Authority) []string {
	c.t.Helper()
	c.due = nil
	if err := a.maintain(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return c.due
}

// wantCurrent checks whether a Tunnel's Secret is current.
func (c *cluster) wantCurrent(a *Authority, t *v1alpha1.Tunnel, want bool) {
	c.t.Helper()
	got, err := a.IsCurrent(c.t.Context(), t)
	if err != nil {
		c.t.Fatal(err)
	}
	if got != want {
		c.t.Errorf("the Secret of %s is current: %t, want %t", t.Name, got, want)
	}
}

func (c *cluster) files(t *v1alpha1.Tunnel) map[string][]byte {
	c.t.Helper()
	secret := c.secret(secretKey(t))
	if secret == nil {
		c.t.Fatalf("Tunnel %s has no Secret", t.Name)
	}
	return secret.Data
}

// wantAccepted checks that a Tunnel's Envoys can connect, and that they are identified.
func (c *cluster) wantAccepted(a *Authority, t *v1alpha1.Tunnel) {
	c.t.Helper()
	files := c.files(t)
	got, err := connect(c.t, a, certificateIn(c.t, files), files[envoy.CAFile])
	if err != nil {
		c.t.Errorf("the Envoys of %s cannot connect: %v", t.Name, err)
		return
	}
	if want := a.identityOf(t); got != want {
		c.t.Errorf("the Envoys of %s have the identity %+v, want %+v", t.Name, got, want)
	}
}

func (i Identity) String() string { return fmt.Sprintf("%s %s %s", i.ClusterID, i.Gateway, i.Tunnel) }

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
