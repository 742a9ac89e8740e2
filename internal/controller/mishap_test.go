package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// secret returns the Gateway's Secret.
func (l *life) secret() *corev1.Secret {
	l.t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "platform", Name: tokenSecretName(l.key.Name)}
	if err := l.client.Get(l.t.Context(), key, secret); err != nil {
		l.t.Fatal(err)
	}
	return secret
}

// update changes the Gateway as a user would.
func (l *life) update(how func(*gatewayv1.Gateway)) {
	l.t.Helper()
	g := l.loaded().Gateway
	how(g)
	if err := l.client.Update(l.t.Context(), g); err != nil {
		l.t.Fatal(err)
	}
}

// release lets the Gateway go, as one pass.
func (l *life) release() (string, time.Duration) {
	l.t.Helper()
	loaded := l.loaded()
	return l.letGo(l.t.Context(), l.of(loaded), loaded.Gateway, &l.settings)
}

// After a restart a deletion first looks for the tunnel's name. Were it turned
// away between that and the deletion, it would look again, and many would spend
// the whole budget on looking.
func TestDeletionIsOneTurn(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.restart(l.client)
	l.calls()
	if why, _ := l.release(); why != "" {
		t.Fatalf("the tunnel is kept: %s", why)
	}
	calls := l.cloud.Calls()
	if len(calls) < 2 {
		t.Fatalf("calls %+v, want a look and a deletion at least", calls)
	}
	for _, call := range calls {
		if call.Turn == nil || call.Turn != calls[0].Turn || call.Priority != provider.PriorityDeletion {
			t.Errorf("%s has another turn or priority than the first", call.Op)
		}
	}
}

// A tunnel that was deleted is replaced, with all that belongs to it, and
// nothing of it is looked for any more.
func TestLostTunnel(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	if err := l.cloud.DeleteTunnel(t.Context(), l.tunnelID()); err != nil {
		t.Fatal(err)
	}
	l.clock = l.clock.Add(time.Hour)
	l.must("a.example.com")
	if _, id, err := provider.Token(l.secret().Data[TokenKey]).Credentials(); err != nil || id != l.tunnelID() {
		t.Errorf("the Secret has a token of tunnel %s, %v; want %s", id, err, l.tunnelID())
	}
	l.cloud.SetConnected(l.tunnelID(), true)
	look := inventory{tunnels: l.tunnels, wake: func(key state.Key) { t.Errorf("%s is looked at again", key) }}
	if err := look.look(t.Context()); err != nil {
		t.Error(err)
	}
}

// A deletion removes the connections of connectors that are gone, and is refused
// for one that is connected.
func TestDeletionWithConnections(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.cloud.SetConnected(l.tunnelID(), true)
	if problem, _ := l.release(); !strings.Contains(problem, "has connections") {
		t.Errorf("with a connector: %q", problem)
	}
	l.cloud.Crash(l.tunnelID())
	l.clock = l.clock.Add(time.Hour)
	if problem, _ := l.release(); problem != "" {
		t.Errorf("with a stale connection: %q", problem)
	}
	if got := len(l.cloud.LiveTunnels()); got != 0 {
		t.Errorf("%d live tunnels", got)
	}
}

// Running connectors do not show that their token was replaced; it is asked
// for now and then.
func TestRotatedTokenOfAHealthyTunnel(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	if err := l.cloud.RotateToken(t.Context(), l.tunnelID()); err != nil {
		t.Fatal(err)
	}
	want, err := l.cloud.Token(t.Context(), l.tunnelID())
	if err != nil {
		t.Fatal(err)
	}
	l.calls()
	for range 24 {
		l.clock = l.clock.Add(time.Hour)
		l.must("a.example.com")
	}
	if got := provider.Token(l.secret().Data[TokenKey]); string(got) != string(want) {
		t.Error("the Secret still has the old token after a day")
	}
	asked := slices.DeleteFunc(l.calls(), func(op fakeprovider.Op) bool { return op != fakeprovider.OpToken })
	if len(asked) != 1 {
		t.Errorf("the token was asked for %d times", len(asked))
	}
}

func TestInfrastructureLabelsOfTheSecret(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.update(func(g *gatewayv1.Gateway) {
		g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{Labels: map[gatewayv1.LabelKey]gatewayv1.LabelValue{"team": "x"}}
	})
	l.must("a.example.com")
	if got := l.secret().Labels["team"]; got != "x" {
		t.Errorf("label team is %q", got)
	}
}

// What is said of a paused Gateway does not depend on who says it.
func TestPausedOverARestart(t *testing.T) {
	for name, wanted := range map[string]string{"in effect": "a.example.com", "not in effect": "b.example.com"} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.must("a.example.com")
			l.update(func(g *gatewayv1.Gateway) { g.Annotations[state.PausedAnnotation] = "true" })
			before, _ := l.pass(wanted)
			l.restart(l.client)
			after, _ := l.pass(wanted)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the push differs (-before +after):\n%s", diff)
			}
			if document, _ := l.cloud.Document(l.tunnelID()); document.Hash() != wants("a.example.com").Hash() {
				t.Error("the document was written")
			}
		})
	}
}

// Another controller's record is not ours to write, whatever it says.
func TestPauseOfAGatewayOfAnother(t *testing.T) {
	l := newLife(t)
	record := state.Record{Controller: "example.com/other", Account: "other", Tunnel: "t-1", Origin: state.OriginCreated, Contested: true}
	l.update(func(g *gatewayv1.Gateway) {
		g.Annotations = map[string]string{state.RecordAnnotation: record.String(), state.PausedAnnotation: "true"}
	})
	l.pass("a.example.com")
	if got := l.loaded().Record; got != record {
		t.Errorf("the record is %+v", got)
	}
}

// Whoever may edit one Gateway cannot take another's tunnel by its record.
func TestRecordThatNamesAnothersTunnel(t *testing.T) {
	l := newLife(t)
	attacker := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "attacker", UID: types.UID("attacker")},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "tunnel"},
	}
	l.update(func(g *gatewayv1.Gateway) { g.CreationTimestamp = metav1.NewTime(noon) }) // the attacker is older
	l.must("a.example.com")
	mine := l.tunnelID()
	victim := l.key
	if err := l.client.Create(t.Context(), attacker); err != nil {
		t.Fatal(err)
	}
	l.key = state.GatewayKey("platform", "attacker")
	l.must("b.example.com")
	l.restart(l.client)
	l.update(func(g *gatewayv1.Gateway) {
		record, _ := state.ReadRecord(g)
		record.Tunnel = mine
		g.Annotations[state.RecordAnnotation] = record.String()
	})
	l.must("b.example.com")
	if l.tunnelID() == mine {
		t.Error("the attacker has the tunnel")
	}
	l.key = victim
	l.must("c.example.com")
	if l.tunnelID() != mine {
		t.Error("the victim lost its tunnel")
	}
	if problem, _ := l.release(); problem != "" {
		t.Errorf("the victim is not let go: %s", problem)
	}
	if live := l.cloud.LiveTunnels(); len(live) != 1 || live[0].ID == mine {
		t.Errorf("live tunnels: %v", live)
	}
}

// A record that names a tunnel of another name is taken off by whoever was
// asked to, also while this process runs.
func TestRecordIsTakenOffOnRequest(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.update(func(g *gatewayv1.Gateway) { delete(g.Annotations, state.RecordAnnotation) })
	l.must("a.example.com")
	if l.tunnelID() == "" {
		t.Fatal("a record that somebody took off by mistake is not put back")
	}
	l.accounts.flags.Account = "another"
	if push, _ := l.pass("b.example.com"); !strings.Contains(push.Message, "take the annotation") {
		t.Fatalf("the push is %+v", push)
	}
	l.update(func(g *gatewayv1.Gateway) { delete(g.Annotations, state.RecordAnnotation) })
	l.must("b.example.com")
	if got := l.loaded().Record.Account; got != "another" {
		t.Errorf("the tunnel is in account %q", got)
	}
}

// When a class comes back while the tunnel is being deleted, nothing is taken
// for known that was known before, and nobody else is blamed.
func TestClassThatComesBack(t *testing.T) {
	for name, begin := range map[string]func(*life){
		"the answer was lost": func(l *life) {
			l.cloud.FailAfter(fakeprovider.OpDeleteTunnel, errDown)
			if problem, _ := l.release(); problem == "" {
				l.t.Fatal("the Gateway was let go")
			}
		},
		"a later step failed": func(l *life) {
			if problem, _ := l.release(); problem != "" {
				l.t.Fatal(problem)
			}
		},
		"Cloudflare refused for long": func(l *life) {
			for range 7 {
				l.cloud.Fail(fakeprovider.OpDeleteTunnel, provider.ErrConnected)
				_, again := l.release()
				l.clock = l.clock.Add(again)
			}
			l.clock = l.clock.Add(-30 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.must("a.example.com")
			begin(l)
			l.told()
			l.must("b.example.com")
			live := l.cloud.LiveTunnels()
			if len(live) != 1 || live[0].ID != l.tunnelID() {
				t.Errorf("live tunnels %v, recorded %s", live, l.tunnelID())
			}
			for _, e := range l.told() {
				if strings.HasPrefix(e, "Warning") || strings.Contains(e, "Recovered") {
					t.Errorf("event %q", e)
				}
			}
		})
	}
}

// A deletion that waits for its turn has not failed; and a new API token is
// tried at once.
func TestDeletionThatWaits(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.told()
	l.cloud.Fail(fakeprovider.OpDeleteTunnel, &provider.RateLimitedError{RetryAfter: 40 * time.Second, Budget: true})
	if problem, again := l.release(); problem != messageKept || again != 40*time.Second {
		t.Errorf("the deletion says %q, again in %s", problem, again)
	}
	l.calls()
	l.clock = l.clock.Add(10 * time.Second)
	if _, again := l.release(); again != 30*time.Second {
		t.Errorf("before its turn it comes again in %s", again)
	}
	l.wantCalls()
	if events := l.told(); len(events) != 0 {
		t.Errorf("events %q", events)
	}

	l.clock = l.clock.Add(time.Minute)
	l.cloud.Fail(fakeprovider.OpDeleteTunnel, provider.ErrUnauthorized)
	if problem, _ := l.release(); !strings.Contains(problem, "refuses the API token") {
		t.Errorf("the deletion says %q", problem)
	}
	l.accounts.flags.Token = "new" // which opens the same account anew
	l.accounts.open = func(string, string) (provider.Provider, error) { return sameCloud{l.cloud}, nil }
	if problem, _ := l.release(); problem != "" {
		t.Errorf("with a new token it says %q", problem)
	}
}

// sameCloud is the provider of a new token.
type sameCloud struct{ *fakeprovider.Provider }

// Two writes may be late at a crash: the record has the hash of both.
func TestWriteThatArrivesAfterACrash(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.cloud.Fail(fakeprovider.OpConfigure, errDown)
	l.pass("late.example.com")
	l.clock = l.clock.Add(time.Second)
	l.must("b.example.com")
	l.restart(l.client)
	l.told()
	_, again := l.pass("b.example.com")
	l.cloud.SetDocument(l.tunnelID(), wants("late.example.com"))
	l.clock = l.clock.Add(again)
	l.must("b.example.com")
	if document, _ := l.cloud.Document(l.tunnelID()); again > provider.CallTimeout+time.Second || document.Hash() != wants("b.example.com").Hash() {
		t.Errorf("it is looked at again in %s, and the document begins with %s", again, document.Ingress[0].Hostname)
	}
	if events := l.told(); len(events) != 0 {
		t.Errorf("events %q", events)
	}
}

// The key of a ListenerSet that does not exist is not that of the Gateway of
// the same name.
func TestOrphanOfAGatewaysName(t *testing.T) {
	l := newLife(t)
	other := types.NamespacedName{Name: "other"}
	hostnames := gateway.NewHostnames()
	hostnames.Set(l.key.NamespacedName, []string{"a.example.com"})
	hostnames.Set(other, []string{"a.example.com"})
	r := &reconciler{
		tunnels: l.tunnels, observer: l.observer(), overlaps: &overlaps{hostnames: hostnames, wake: func(state.Key) {}},
		loader: state.Loader{Reader: l.client, ControllerName: ourName}, writer: &status.Writer{Client: l.client},
	}
	orphan := state.Key{Kind: gateway.KindListenerSet, NamespacedName: l.key.NamespacedName}
	if _, err := r.Reconcile(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	if got := hostnames.Shared(other); len(got.By) != 1 {
		t.Errorf("the other Gateway shares %+v", got)
	}
}
