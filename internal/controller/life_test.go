package controller

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// life is one Gateway, its tunnel at a provider in memory, and a clock.
type life struct {
	*tunnels
	t      *testing.T
	cloud  *fakeprovider.Provider
	key    state.Key
	events *events.FakeRecorder
	clock  time.Time
	// settings are without connectors, unless a test says otherwise.
	settings gateway.Settings
}

func newLife(t *testing.T) *life {
	t.Helper()
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: ourName},
	}
	g := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared", UID: types.UID("first")},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "tunnel"},
	}
	c := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(class, g)
	for _, index := range state.Indexes(ourName) {
		c = c.WithIndex(index.Object, index.Field, index.Extract)
	}
	l := &life{t: t, cloud: fakeprovider.New(), key: state.GatewayKey("platform", "shared"), events: events.NewFakeRecorder(100), clock: noon}
	l.settings.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
	l.restart(c.Build())
	return l
}

// restart is what a new process knows: nothing.
func (l *life) restart(c client.Client) {
	open := func(string, string) (provider.Provider, error) { return l.cloud, nil }
	l.tunnels = &tunnels{
		client: c, live: c, events: l.events,
		accounts: &accounts{
			flags: credentials.Default{Account: fakeprovider.AccountID, Token: "token"}, open: open, metadata: c, live: c,
			opened: map[credentials.Source]*opened{}, secrets: map[types.NamespacedName]bool{},
		},
		connectors:     &connectors{client: c, live: c, applied: map[state.Key]string{}},
		controllerName: ourName, clusterID: "west", driftInterval: 10 * time.Minute,
		now:       func() time.Time { return l.clock },
		byGateway: map[state.Key]*tunnel{},
		doubts:    map[state.Key]doubt{}, letGone: map[state.Key]provider.TunnelID{},
	}
}

func (l *life) loaded() *state.Loaded {
	l.t.Helper()
	g := &gatewayv1.Gateway{}
	if err := l.client.Get(l.t.Context(), l.key.NamespacedName, g); err != nil {
		l.t.Fatal(err)
	}
	record, err := state.ReadRecord(g)
	if err != nil {
		l.t.Fatal(err)
	}
	return &state.Loaded{Gateway: g, Record: record, Ours: true}
}

// wants is a document that sends one hostname somewhere.
func wants(hostname string) provider.Configuration {
	return provider.Configuration{Ingress: []provider.IngressRule{{Hostname: hostname, Service: "http://web:80"}, {Service: "http_status:404"}}}
}

// pass is one pass that wants the hostname served.
func (l *life) pass(hostname string) (gateway.Push, time.Duration) {
	l.t.Helper()
	loaded := l.loaded()
	t := l.of(loaded)
	push, again := l.apply(l.t.Context(), t, loaded.Gateway, &l.settings, wants(hostname))
	return push, min(again, l.connect(l.t.Context(), t, loaded.Gateway, &gateway.Result{Settings: &l.settings}))
}

// must is a pass that has to succeed.
func (l *life) must(hostname string) {
	l.t.Helper()
	if push, _ := l.pass(hostname); push.State != gateway.PushSucceeded {
		l.t.Fatalf("a pass for %s ended with %+v", hostname, push)
	}
}

func (l *life) tunnelID() provider.TunnelID {
	l.t.Helper()
	return l.loaded().Record.Tunnel
}

// calls returns which calls there were since they were asked for last.
func (l *life) calls() []fakeprovider.Op {
	var ops []fakeprovider.Op
	for _, call := range l.cloud.Calls() {
		ops = append(ops, call.Op)
	}
	l.cloud.ResetCalls()
	return ops
}

func (l *life) wantCalls(want ...fakeprovider.Op) {
	l.t.Helper()
	if diff := cmp.Diff(want, l.calls()); diff != "" {
		l.t.Errorf("calls differ (-want +got):\n%s", diff)
	}
}

// told returns the events since the last time.
func (l *life) told() []string {
	var all []string
	for {
		select {
		case e := <-l.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func TestLifeOfATunnel(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure, fakeprovider.OpToken)
	l.must("a.example.com")
	l.wantCalls()
	l.must("b.example.com")
	l.wantCalls(fakeprovider.OpConfigure)

	l.restart(l.client)
	l.must("b.example.com")
	l.wantCalls(fakeprovider.OpConfiguration)
	l.must("c.example.com")
	l.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpConfigure)

	l.clock = l.clock.Add(time.Hour)
	l.must("c.example.com")
	l.wantCalls(fakeprovider.OpConfiguration)
}

// A turn in the budget is waited for, and is no failure; whoever asks before
// it is put at the end of the queue, so that is not done.
func TestTurnInTheBudget(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.restart(l.client)
	l.calls()
	l.cloud.Fail(fakeprovider.OpConfiguration, &provider.RateLimitedError{RetryAfter: 20 * time.Second, Budget: true})
	push, again := l.pass("a.example.com")
	if push.State != gateway.PushOutstanding || again != 20*time.Second {
		t.Errorf("the pass ended with %+v, again in %s", push, again)
	}
	if call := l.cloud.Calls()[0]; call.Priority != provider.PriorityStart {
		t.Errorf("reading back after a start has priority %d", call.Priority)
	}
	l.wantCalls(fakeprovider.OpConfiguration)
	l.clock = l.clock.Add(5 * time.Second)
	if _, again := l.pass("a.example.com"); again != 15*time.Second {
		t.Errorf("a pass before the turn comes again in %s", again)
	}
	l.wantCalls()

	// A change has a turn of its own.
	l.must("b.example.com")
	if call := l.cloud.Calls()[0]; call.Op != fakeprovider.OpConfiguration || call.Priority != provider.PriorityChange {
		t.Errorf("reading for a change was call %+v", call)
	}
	if events := l.told(); len(events) != 1 { // that the tunnel was created
		t.Errorf("events: %q", events)
	}
}

// A change that waits for its turn and is overtaken by another one leaves it
// the turn, so that no turn is promised to nobody.
func TestTurnOfAChangeIsTheNextOnes(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.calls()
	l.cloud.Fail(fakeprovider.OpConfigure, &provider.RateLimitedError{RetryAfter: 20 * time.Second, Budget: true})
	l.pass("b.example.com")
	l.calls()
	l.clock = l.clock.Add(5 * time.Second)
	push, again := l.pass("c.example.com")
	if push.State != gateway.PushOutstanding || again != 15*time.Second {
		t.Errorf("the next change ended with %+v, again in %s", push, again)
	}
	l.wantCalls()
	l.clock = l.clock.Add(15 * time.Second)
	l.must("c.example.com")
	l.wantCalls(fakeprovider.OpConfigure)
}

// A look for drift that has to wait changes nothing.
func TestDriftThatHasToWait(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.calls()
	l.clock = l.clock.Add(time.Hour)
	l.cloud.Fail(fakeprovider.OpConfiguration, &provider.RateLimitedError{RetryAfter: 40 * time.Second, Budget: true})
	push, again := l.pass("a.example.com")
	if push.State != gateway.PushSucceeded || again != 40*time.Second {
		t.Errorf("the pass ended with %+v, again in %s", push, again)
	}
	if call := l.cloud.Calls()[0]; call.Priority != provider.PriorityDrift {
		t.Errorf("reading back now and then has priority %d", call.Priority)
	}
	l.must("b.example.com")
	l.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure)
}

// A write of an earlier process, or one that was given up, may arrive after a
// newer one; it is looked for, put right, and nobody else is blamed.
func TestWriteThatArrivesLate(t *testing.T) {
	for name, begin := range map[string]func(*life){
		"of an earlier process": func(l *life) {
			loaded := l.loaded()
			late := wants("late.example.com")
			record := l.of(loaded).record.Writing(late.Hash(), wants("a.example.com").Hash())
			if err := l.writeRecord(context.Background(), l.of(loaded), loaded.Gateway, record); err != nil {
				l.t.Fatal(err)
			}
			l.restart(l.client)
		},
		"that was given up": func(l *life) {
			l.cloud.Fail(fakeprovider.OpConfigure, &provider.UnavailableError{Err: context.DeadlineExceeded})
			if push, _ := l.pass("late.example.com"); push.State != gateway.PushFailed {
				l.t.Fatalf("the write ended with %+v", push)
			}
			l.clock = l.clock.Add(2 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.must("a.example.com")
			begin(l)
			l.must("b.example.com")
			_, again := l.pass("b.example.com")
			if again > provider.CallTimeout+time.Second {
				t.Errorf("the document is read again in %s only", again)
			}
			l.cloud.SetDocument(l.tunnelID(), wants("late.example.com"))
			l.told()
			l.clock = l.clock.Add(again)
			l.must("b.example.com")
			if document, _ := l.cloud.Document(l.tunnelID()); document.Hash() != wants("b.example.com").Hash() {
				t.Error("the late document stays")
			}
			for _, e := range l.told() {
				if e != "Normal Recovered The tunnel's configuration is in effect again." {
					t.Errorf("event %q", e)
				}
			}
		})
	}
}

// Three edits within ten minutes are a fight; three within more are not.
func TestEdits(t *testing.T) {
	for name, test := range map[string]struct {
		gap  time.Duration
		want []bool
	}{
		"often":         {4 * time.Minute, []bool{false, false, true}},
		"now and then":  {6 * time.Minute, []bool{false, false, false, false}},
		"at the border": {5 * time.Minute, []bool{false, false, false}},
	} {
		var e edits
		var got []bool
		for i := range test.want {
			e.add(provider.Version(i), noon.Add(time.Duration(i)*test.gap))
			got = append(got, e.tooMany())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: too many (-want +got):\n%s", name, diff)
		}
	}
}

// An edit is noticed once, however often it cannot be put right.
func TestEditThatCannotBePutRight(t *testing.T) {
	for name, err := range map[string]error{
		"down":    errDown,
		"limited": &provider.RateLimitedError{RetryAfter: time.Second},
		"budget":  &provider.RateLimitedError{RetryAfter: time.Second, Budget: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.must("a.example.com")
			l.clock = l.clock.Add(time.Hour)
			l.cloud.SetDocument(l.tunnelID(), wants("foreign.example.com"))
			l.told()
			l.cloud.Fail(fakeprovider.OpConfigure, err, err, err)
			for range 3 {
				_, again := l.pass("a.example.com")
				l.clock = l.clock.Add(again)
			}
			l.must("a.example.com")
			edits := 0
			for _, e := range l.told() {
				if strings.HasPrefix(e, "Warning ForeignEdit") {
					edits++
				}
			}
			if edits != 1 || l.loaded().Record.Contested {
				t.Errorf("the edit was told %d times; a fight: %t", edits, l.loaded().Record.Contested)
			}
		})
	}
}

// Whoever changed a document may do so again, so it is read again soon.
func TestSuspicion(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	l.clock = l.clock.Add(time.Hour)
	l.cloud.SetDocument(l.tunnelID(), wants("foreign.example.com"))
	if _, again := l.pass("a.example.com"); again > suspicion {
		t.Errorf("the document is read again in %s only", again)
	}
}

// An inventory raises doubts about what it does not find well, and only then
// is a token asked for again.
func TestInventory(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	var woken []state.Key
	look := inventory{tunnels: l.tunnels, wake: func(key state.Key) { woken = append(woken, key) }}

	l.cloud.SetConnected(l.tunnelID(), true)
	l.calls()
	if err := look.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(woken) != 0 {
		t.Errorf("a healthy tunnel is looked at again: %v", woken)
	}
	l.wantCalls(fakeprovider.OpTunnels)

	l.cloud.SetConnected(l.tunnelID(), false)
	if err := look.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]state.Key{l.key}, woken); diff != "" {
		t.Errorf("Gateways that are looked at again differ (-want +got):\n%s", diff)
	}
	l.calls()
	l.must("a.example.com")
	l.wantCalls(fakeprovider.OpToken)
	l.must("a.example.com")
	l.wantCalls()

	if err := l.cloud.DeleteTunnel(t.Context(), l.tunnelID()); err != nil {
		t.Fatal(err)
	}
	if err := look.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.calls()
	l.must("a.example.com")
	l.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure, fakeprovider.OpToken)
}

// The record is what a person reads with kubectl.
func TestRecordIsJSON(t *testing.T) {
	l := newLife(t)
	l.must("a.example.com")
	var got map[string]any
	if err := json.Unmarshal([]byte(l.loaded().Gateway.Annotations[state.RecordAnnotation]), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"controller": ourName, "account": fakeprovider.AccountID, "tunnel": string(l.tunnelID()), "origin": "created",
		"hash": wants("a.example.com").Hash(), "previous": provider.Configuration{}.Hash(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record differs (-want +got):\n%s", diff)
	}
}
