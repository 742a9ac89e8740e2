package controller

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// localTunnel makes a locally managed tunnel of that name, and forgets the call.
func (l *life) localTunnel(name string) provider.TunnelID {
	l.t.Helper()
	made, err := l.cloud.CreateTunnel(l.t.Context(), name)
	if err != nil {
		l.t.Fatal(err)
	}
	l.cloud.SetLocal(made.ID, true)
	l.calls()
	return made.ID
}

// ask makes the settings ask for a tunnel.
func (l *life) ask(tunnel v1alpha1.TunnelSettings) { l.settings.Spec.Tunnel = &tunnel }

// untouched fails the test when the tunnel was written, given away or deleted.
func (l *life) untouched(id provider.TunnelID) {
	l.t.Helper()
	for _, op := range l.calls() {
		if op == fakeprovider.OpConfigure || op == fakeprovider.OpToken {
			l.t.Errorf("call of %s", op)
		}
	}
	if _, version := l.cloud.Document(id); version != 0 {
		l.t.Errorf("the tunnel has version %d", version)
	}
	if !slices.ContainsFunc(l.cloud.LiveTunnels(), func(t provider.Tunnel) bool { return t.ID == id }) {
		l.t.Error("the tunnel is deleted")
	}
}

// waysToALocalTunnel make a Gateway want one, and tell what it has to do about it.
var waysToALocalTunnel = map[string]struct {
	want func(*life) provider.TunnelID
	says string
}{
	"named in existing": {func(l *life) provider.TunnelID {
		id := l.localTunnel("elsewhere")
		l.ask(v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: string(id)}})
		return id
	}, "name another one in tunnel.existing.id"},
	"named in existing, to be deleted with the Gateway": {func(l *life) provider.TunnelID {
		id := l.localTunnel("elsewhere")
		l.ask(v1alpha1.TunnelSettings{
			Existing: &v1alpha1.ExistingTunnel{ID: string(id)}, DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyDelete),
		})
		return id
	}, "name another one in tunnel.existing.id"},
	"of the Gateway's name": {func(l *life) provider.TunnelID {
		return l.localTunnel("west-platform-shared")
	}, "rename it"},
	"of a given name": {func(l *life) provider.TunnelID {
		l.ask(v1alpha1.TunnelSettings{Name: ptr.To("mine")})
		return l.localTunnel("mine")
	}, "rename it"},
	"named in a record": {func(l *life) provider.TunnelID {
		id := l.localTunnel("elsewhere")
		l.ask(v1alpha1.TunnelSettings{
			Existing: &v1alpha1.ExistingTunnel{ID: string(id)}, DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyDelete),
		})
		record := state.Record{
			Controller: ourName, Account: fakeprovider.AccountID, Tunnel: id, Origin: state.OriginAdopted,
			Hash: wants("a.example.com").Hash(), TakenOver: true,
		}
		l.update(func(g *gatewayv1.Gateway) {
			g.Annotations = map[string]string{state.RecordAnnotation: record.String(), state.TakeoverAnnotation: "true"}
		})
		return id
	}, "name another one in tunnel.existing.id"},
}

// A locally managed tunnel is nobody's but its owner's, however a Gateway comes
// to want it: its connectors would ignore the document. It is told once.
func TestLocallyManagedTunnel(t *testing.T) {
	for name, way := range waysToALocalTunnel {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.settings.Spec.Connector = nil
			id := way.want(l)
			for range 3 {
				push, _ := l.pass("a.example.com")
				for _, part := range []string{"locally managed", "remote management", way.says} {
					if push.State != gateway.PushFailed || !strings.Contains(push.Message, part) {
						t.Errorf("the push is %+v, want it to say %q", push, part)
					}
				}
			}
			if events := l.told(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning PushFailed") {
				t.Errorf("events %q", events)
			}
			l.wantNoConnectors()
			l.untouched(id)
			if problem, _ := l.release(); problem != "" {
				t.Errorf("the Gateway is not let go: %s", problem)
			}
			l.untouched(id)
		})
	}
}

func (l *life) wantNoConnectors() {
	l.t.Helper()
	var deployments appsv1.DeploymentList
	if err := l.client.List(l.t.Context(), &deployments); err != nil {
		l.t.Fatal(err)
	}
	if len(deployments.Items) > 0 {
		l.t.Error("connectors are deployed")
	}
}

// Whichever way its owner takes out, the next pass serves.
func TestLocallyManagedTunnelIsMended(t *testing.T) {
	for name, way := range waysToALocalTunnel {
		t.Run(name+", and migrated", func(t *testing.T) {
			l := newLife(t)
			id := way.want(l)
			l.pass("a.example.com")
			l.cloud.SetLocal(id, false)
			l.must("a.example.com")
			if got := l.tunnelID(); got != id {
				t.Errorf("the Gateway has tunnel %s, want %s", got, id)
			}
		})
	}
	t.Run("settings that ask for none", func(t *testing.T) {
		l := newLife(t)
		id := waysToALocalTunnel["named in existing"].want(l)
		l.pass("a.example.com")
		l.settings.Spec.Tunnel = nil
		l.must("a.example.com")
		if got := l.tunnelID(); got == id {
			t.Error("the Gateway has the locally managed tunnel")
		}
	})
}

// A tunnel that becomes locally managed while it serves is written no more, and
// is said to serve no more.
func TestTunnelThatBecomesLocallyManaged(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	id := l.tunnelID()
	l.cloud.SetLocal(id, true)
	l.clock = l.clock.Add(l.driftInterval)
	for range 2 {
		if push, _ := l.pass("a.example.com"); push.State != gateway.PushFailed {
			t.Errorf("the push is %+v", push)
		}
	}
	l.calls()
	l.pass("b.example.com")
	l.wantCalls(fakeprovider.OpConfiguration)
	l.cloud.SetLocal(id, false)
	l.must("b.example.com")
}

// The API may tell so late as in its answer to a write.
func TestWriteToATunnelThatBecameLocallyManaged(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.cloud.SetLocal(l.tunnelID(), true)
	if push, _ := l.pass("b.example.com"); push.State != gateway.PushFailed || !strings.Contains(push.Message, "locally managed") {
		t.Errorf("the push is %+v", push)
	}
	l.calls()
	l.pass("c.example.com")
	l.wantCalls(fakeprovider.OpConfiguration)
}

// The guide shows what the Gateway says.
func TestGuideQuotesTheRefusal(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/migration-from-cloudflared.md")
	if err != nil {
		t.Fatal(err)
	}
	var f fault
	f.add(&localError{tunnel: "0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90", existing: true}, attempt{outcome: outcomeKept}, noon)
	if text := strings.ReplaceAll(string(guide), "\n> ", " "); !strings.Contains(text, f.message) {
		t.Errorf("the guide does not say %q", f.message)
	}
}
