package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

var errCrash = errors.New("the process ended")

// crash ends the process at one of its writes to the API server.
type crash struct {
	at      int  // the number of the write
	applied bool // whether it is applied all the same
	writes  int
}

// write counts a write, and carries it out unless the process ends before.
func (c *crash) write(do func() error) error {
	n := c.writes
	c.writes++
	if n != c.at {
		return do()
	}
	if c.applied {
		_ = do()
	}
	return errCrash
}

func (c *crash) functions() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return c.write(func() error { return w.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return c.write(func() error { return w.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return c.write(func() error { return w.Patch(ctx, o, p, options...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return c.write(func() error { return w.Delete(ctx, o, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, w client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return c.write(func() error { return w.SubResource(sub).Update(ctx, o, options...) })
		},
	}
}

// process is a whole reconciler in front of a life.
func (l *life) process() *reconciler {
	l.restart(l.client)
	all := func(context.Context) ([]state.Key, error) { return nil, nil }
	return &reconciler{
		tunnels: l.tunnels, now: l.now, observer: l.observer(),
		overlaps: &overlaps{all: all, wake: func(state.Key) {}, hostnames: gateway.NewHostnames()},
		loader: state.Loader{
			Reader: l.client, ControllerName: ourName, Certificates: state.DirectCertificates{Reader: l.client},
		},
		decisions: gateway.Options{ControllerName: ourName, ClusterDomain: "cluster.local"},
		writer: &status.Writer{
			Client: l.client, Live: l.client, ControllerName: ourName, Now: l.now, Tell: func(client.Object, status.Change) {},
		},
	}
}

// until runs passes, and another process after a crash, until it is done.
func (l *life) until(r *reconciler, done func() bool) *reconciler {
	l.t.Helper()
	for range 20 {
		result, err := r.Reconcile(l.t.Context(), l.key)
		if err != nil {
			r = l.process()
		}
		if err == nil && done() {
			return r
		}
		l.clock = l.clock.Add(max(result.RequeueAfter, time.Second))
	}
	l.t.Fatal("it does not end")
	return nil
}

func (l *life) programmed() bool {
	g := l.loaded().Gateway
	for _, c := range g.Status.Conditions {
		if c.Type == "Programmed" && c.Status == metav1.ConditionTrue && c.ObservedGeneration == g.Generation {
			return len(g.Status.Listeners) == len(g.Spec.Listeners)
		}
	}
	return false
}

func (l *life) gone() bool {
	return apierrors.IsNotFound(l.client.Get(l.t.Context(), l.key.NamespacedName, &gatewayv1.Gateway{}))
}

// Whichever write to the API server is the last one of a process, the next one
// brings creation, change and deletion to their end.
func TestCrashAtAnyWrite(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for at, more := 0, true; more && !t.Failed(); at++ {
			t.Run(fmt.Sprintf("write %d, applied %t", at, applied), func(t *testing.T) {
				c := &crash{at: at, applied: applied}
				liveAndDie(t, c)
				if more = c.writes > at; !more && at < 8 {
					t.Errorf("a life of %d writes only", at)
				}
			})
		}
	}
}

// liveAndDie goes through creation, change and deletion.
func liveAndDie(t *testing.T, c *crash) {
	t.Helper()
	l := newLife(t)
	g := l.loaded().Gateway
	g.Spec.Listeners = []gatewayv1.Listener{{Name: "a", Hostname: host("*.example.com"), Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	b := fake.NewClientBuilder().WithScheme(Scheme()).WithStatusSubresource(&gatewayv1.Gateway{}).WithInterceptorFuncs(c.functions())
	for _, index := range state.Indexes(ourName) {
		b = b.WithIndex(index.Object, index.Field, index.Extract)
	}
	g.ResourceVersion = ""
	class := &gatewayv1.GatewayClass{}
	if err := l.client.Get(t.Context(), types.NamespacedName{Name: "tunnel"}, class); err != nil {
		t.Fatal(err)
	}
	class.ResourceVersion = ""
	l.client = b.WithObjects(class, g).Build()

	r := l.until(l.process(), l.programmed)
	more := l.loaded().Gateway
	more.Generation++
	more.Spec.Listeners = append(more.Spec.Listeners, gatewayv1.Listener{
		Name: "b", Hostname: host("b.example.com"), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
	})
	user(c, func() error { return l.client.Update(t.Context(), more) })
	r = l.until(r, l.programmed)
	if document, _ := l.cloud.Document(l.tunnelID()); len(document.Ingress) != 2 {
		t.Errorf("the document is %+v", document)
	}
	if len(l.cloud.LiveTunnels()) != 1 {
		t.Errorf("live tunnels: %v", l.cloud.LiveTunnels())
	}
	if string(l.secret().Data[TokenKey]) == "" {
		t.Error("the Secret is empty")
	}
	user(c, func() error { return l.client.Delete(t.Context(), more) })
	l.until(r, l.gone)
	if len(l.cloud.LiveTunnels()) != 0 {
		t.Errorf("live tunnels after the deletion: %v", l.cloud.LiveTunnels())
	}
	err := l.client.Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: tokenSecretName("shared")}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Secret is left behind: %v", err)
	}
}

// user writes without a crash.
func user(c *crash, write func() error) {
	at := c.at
	c.at = -1
	_ = write()
	c.at, c.writes = at, c.writes-1
}

func host(name string) *gatewayv1.Hostname {
	h := gatewayv1.Hostname(name)
	return &h
}
