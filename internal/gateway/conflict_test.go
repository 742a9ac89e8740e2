package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// withoutRoutes are options for decisions about listeners only.
var withoutRoutes = Options{DataPlanes: routing.DataPlanes{v1alpha1.DataPlaneIngressRules: {}}}

// parseListener parses "name hostname:port protocol". The hostname "*" means no
// hostname.
func parseListener(t *testing.T, text string) gatewayv1.Listener {
	t.Helper()
	var l gatewayv1.Listener
	address := ""
	if _, err := fmt.Sscan(text, &l.Name, &address, &l.Protocol); err != nil {
		t.Fatal(err)
	}
	hostname, port, _ := strings.Cut(address, ":")
	if _, err := fmt.Sscan(port, &l.Port); err != nil {
		t.Fatal(err)
	}
	if hostname != "*" {
		l.Hostname = new(gatewayv1.Hostname(hostname))
	}
	return l
}

// snapshotOf returns a Gateway with the listeners of the first owner, and a ListenerSet
// in a separate namespace for each other owner, from the oldest to the youngest.
func snapshotOf(t *testing.T, owners ...[]string) *Snapshot {
	t.Helper()
	s := &Snapshot{Gateway: &gatewayv1.Gateway{}, Namespaces: map[string]*corev1.Namespace{}}
	s.Gateway.Namespace, s.Gateway.Name = "infra", "shared"
	s.Gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
	for _, text := range owners[0] {
		s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, parseListener(t, text))
	}
	for i, entries := range owners[1:] {
		set := &gatewayv1.ListenerSet{}
		set.Namespace, set.Name = fmt.Sprintf("tenant-%d", i), "set"
		set.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
		for _, text := range entries {
			set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry(parseListener(t, text)))
		}
		s.ListenerSets = append(s.ListenerSets, set)
	}
	return s
}

// problems returns the reason and message for each rejected listener.
func problems(r *Result) map[string]string {
	found := map[string]string{}
	for _, l := range r.Listeners {
		if l.Rejected != nil {
			found[string(l.Spec.Name)] = l.Rejected.Reason.String() + ": " + l.Rejected.Message
		}
	}
	return found
}

// The API server rejects objects in which two listeners have the same port,
// protocol and hostname. The decision must not depend on that validation.
func TestConflictingListenersOfOneOwnerAllLose(t *testing.T) {
	const (
		conflictWithA = `HostnameConflict: Hostname "x.example.com" on port 80 is also claimed by listener "a" of the same object, so neither listener is served. Remove one of them.`
		conflictWithB = `HostnameConflict: Hostname "x.example.com" on port 80 is also claimed by listener "b" of the same object, so neither listener is served. Remove one of them.`
	)
	for name, test := range map[string]struct {
		owners [][]string
		want   map[string]string
	}{
		"two listeners of the Gateway conflict, and a third is distinct": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP", "c y.example.com:80 HTTP"}},
			map[string]string{"a": conflictWithB, "b": conflictWithA},
		},
		"two listeners of a ListenerSet conflict": {
			[][]string{nil, {"a x.example.com:80 HTTP", "b x.example.com:80 HTTP"}},
			map[string]string{"a": conflictWithB, "b": conflictWithA},
		},
		"three listeners conflict": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP", "c x.example.com:80 HTTP"}},
			map[string]string{"a": conflictWithB, "b": conflictWithA, "c": conflictWithA},
		},
		"listeners without hostnames conflict": {
			[][]string{{"a *:80 HTTP", "b *:80 HTTP"}},
			map[string]string{
				"a": `HostnameConflict: The empty hostname (every hostname) on port 80 is also claimed by listener "b" of the same object, so neither listener is served. Remove one of them.`,
				"b": `HostnameConflict: The empty hostname (every hostname) on port 80 is also claimed by listener "a" of the same object, so neither listener is served. Remove one of them.`,
			},
		},
		"protocol conflicts take precedence over hostname conflicts": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP", "c y.example.com:80 HTTPS"}},
			map[string]string{
				"a": `ProtocolConflict: Port 80 has protocol HTTP here, and protocol HTTPS in listener "c" of the same object, so neither listener is served. Use one protocol for the port.`,
				"b": `ProtocolConflict: Port 80 has protocol HTTP here, and protocol HTTPS in listener "c" of the same object, so neither listener is served. Use one protocol for the port.`,
				"c": `ProtocolConflict: Port 80 has protocol HTTPS here, and protocol HTTP in listener "a" of the same object, so neither listener is served. Use one protocol for the port.`,
			},
		},
		"conflicting listeners of the Gateway claim their hostname against later owners": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP"}, {"late x.example.com:80 HTTP", "other y.example.com:80 HTTP"}},
			map[string]string{
				"a": conflictWithB, "b": conflictWithA,
				"late": `HostnameConflict: Hostname "x.example.com" on port 80 is already claimed by listener "a" of Gateway infra/shared, which takes precedence. Use another hostname.`,
			},
		},
		"conflicting listeners in a ListenerSet claim their hostname": {
			[][]string{nil, {"a x.example.com:80 HTTP", "b x.example.com:80 HTTP"}, {"late x.example.com:80 HTTP"}},
			map[string]string{
				"a": conflictWithB, "b": conflictWithA,
				"late": `HostnameConflict: Hostname "x.example.com" on port 80 is already claimed by another ListenerSet, which takes precedence. Use another hostname.`,
			},
		},
		"a listener with an earlier owner does not conflict with siblings": {
			[][]string{{"own x.example.com:80 HTTP"}, {"a x.example.com:80 HTTP", "b x.example.com:8080 HTTP", "c y.example.com:80 HTTP"}},
			map[string]string{
				"a": `HostnameConflict: Hostname "x.example.com" on port 80 is already claimed by listener "own" of Gateway infra/shared, which takes precedence. Use another hostname.`,
				"b": `PortUnavailable: Hostname "x.example.com" is already claimed on port 80 by listener "own" of Gateway infra/shared, which takes precedence. ` +
					`A tunnel serves a hostname on all ports, so one Gateway or ListenerSet must declare all listeners for the hostname.`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(Build(snapshotOf(t, test.owners...), withoutRoutes))); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
		})
	}
}

// An object can have at most 64 listeners, but a Gateway with its ListenerSets can
// have more.
func TestConflictsAreFoundAmongManyListeners(t *testing.T) {
	const sets, each = 8, 64
	owners := make([][]string, 1+sets)
	for owner := range owners {
		for i := range each {
			owners[owner] = append(owners[owner], fmt.Sprintf("l%d-%d o%d-%d.example.com:80 HTTP", owner, i, owner, i))
		}
	}
	// The last set has a hostname that the set before it has, and the second set has a
	// hostname that the Gateway has.
	owners[sets][each-1] = fmt.Sprintf("late o%d-%d.example.com:80 HTTP", sets-1, each-1)
	owners[2][0] = "second o0-63.example.com:80 HTTP"
	r := Build(snapshotOf(t, owners...), withoutRoutes)
	if got := len(r.Listeners); got != (1+sets)*each {
		t.Errorf("got %d listeners, want %d", got, (1+sets)*each)
	}
	got := problems(r)
	want := map[string]string{
		"late":   fmt.Sprintf(`HostnameConflict: Hostname "o%d-%d.example.com" on port 80 is already claimed by another ListenerSet, which takes precedence. Use another hostname.`, sets-1, each-1),
		"second": `HostnameConflict: Hostname "o0-63.example.com" on port 80 is already claimed by listener "l0-63" of Gateway infra/shared, which takes precedence. Use another hostname.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
	if got := r.AttachedListenerSets(); got != sets {
		t.Errorf("got %d attached ListenerSets, want %d", got, sets)
	}
}
