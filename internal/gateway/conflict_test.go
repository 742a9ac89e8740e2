package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// parseListener reads "name hostname:port protocol"; the hostname "*" is none.
func parseListener(t *testing.T, text string) gatewayv1.Listener {
	t.Helper()
	var l gatewayv1.Listener
	place := ""
	if _, err := fmt.Sscan(text, &l.Name, &place, &l.Protocol); err != nil {
		t.Fatal(err)
	}
	hostname, port, _ := strings.Cut(place, ":")
	if _, err := fmt.Sscan(port, &l.Port); err != nil {
		t.Fatal(err)
	}
	if hostname != "*" {
		l.Hostname = new(gatewayv1.Hostname(hostname))
	}
	return l
}

// snapshotOf returns a Gateway with the first owner's listeners and ListenerSets
// with the others', each in its own namespace, in order of age.
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

// problems returns reason and message of each listener that is rejected.
func problems(r *Result) map[string]string {
	found := map[string]string{}
	for _, l := range r.Listeners {
		if l.Rejected != nil {
			found[string(l.Spec.Name)] = l.Rejected.Reason + ": " + l.Rejected.Message
		}
	}
	return found
}

// The API server lets no object of ours in whose listeners repeat port,
// protocol and hostname, but "within one owner, nobody wins" must not depend
// on that.
func TestConflictsWithinOneOwner(t *testing.T) {
	const (
		byA = `HostnameConflict: Hostname "x.example.com" on port 80 is claimed by listener "a" of the same object too; neither is served until one of them goes.`
		byB = `HostnameConflict: Hostname "x.example.com" on port 80 is claimed by listener "b" of the same object too; neither is served until one of them goes.`
	)
	for name, test := range map[string]struct {
		owners [][]string
		want   map[string]string
	}{
		"two of the Gateway, a third is distinct": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP", "c y.example.com:80 HTTP"}},
			map[string]string{"a": byB, "b": byA},
		},
		"two of a set": {
			[][]string{nil, {"a x.example.com:80 HTTP", "b x.example.com:80 HTTP"}},
			map[string]string{"a": byB, "b": byA},
		},
		"three": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP", "c x.example.com:80 HTTP"}},
			map[string]string{"a": byB, "b": byA, "c": byA},
		},
		"without hostnames": {
			[][]string{{"a *:80 HTTP", "b *:80 HTTP"}},
			map[string]string{
				"a": `HostnameConflict: Every hostname on port 80 is claimed by listener "b" of the same object too; neither is served until one of them goes.`,
				"b": `HostnameConflict: Every hostname on port 80 is claimed by listener "a" of the same object too; neither is served until one of them goes.`,
			},
		},
		"the protocol of any sibling before the hostname of the next": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP", "c y.example.com:80 HTTPS"}},
			map[string]string{
				"a": `ProtocolConflict: Port 80 is used with protocol HTTPS by listener "c" of the same object, and with HTTP by this one; one port has one protocol.`,
				"b": `ProtocolConflict: Port 80 is used with protocol HTTPS by listener "c" of the same object, and with HTTP by this one; one port has one protocol.`,
				"c": `ProtocolConflict: Port 80 is used with protocol HTTP by listener "a" of the same object, and with HTTPS by this one; one port has one protocol.`,
			},
		},
		"the losers hold their hostname against later owners": {
			[][]string{{"a x.example.com:80 HTTP", "b x.example.com:80 HTTP"}, {"late x.example.com:80 HTTP", "other y.example.com:80 HTTP"}},
			map[string]string{
				"a": byB, "b": byA,
				"late": `HostnameConflict: Hostname "x.example.com" on port 80 is claimed by listener "a" of Gateway infra/shared, which takes precedence.`,
			},
		},
		"a set's losers hold it too, and are not named to others": {
			[][]string{nil, {"a x.example.com:80 HTTP", "b x.example.com:80 HTTP"}, {"late x.example.com:80 HTTP"}},
			map[string]string{
				"a": byB, "b": byA,
				"late": `HostnameConflict: Hostname "x.example.com" on port 80 is claimed by another ListenerSet, which takes precedence.`,
			},
		},
		"who lost to an earlier owner makes no sibling lose": {
			[][]string{{"own x.example.com:80 HTTP"}, {"a x.example.com:80 HTTP", "b x.example.com:8080 HTTP", "c y.example.com:80 HTTP"}},
			map[string]string{
				"a": `HostnameConflict: Hostname "x.example.com" on port 80 is claimed by listener "own" of Gateway infra/shared, which takes precedence.`,
				"b": `PortUnavailable: Hostname "x.example.com" is claimed on port 80 by listener "own" of Gateway infra/shared, which takes precedence; ` +
					`a tunnel serves a hostname on every port at once, so one hostname has one owner.`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(Build(snapshotOf(t, test.owners...), Options{}))); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
		})
	}
}

// "More than 64 in all is normal": the limit of one object is none of the
// Gateway with its sets.
func TestConflictsAcrossManyListeners(t *testing.T) {
	const sets, each = 8, 64
	owners := make([][]string, 1+sets)
	for owner := range owners {
		for i := range each {
			owners[owner] = append(owners[owner], fmt.Sprintf("l%d-%d o%d-%d.example.com:80 HTTP", owner, i, owner, i))
		}
	}
	// The last set claims a hostname of the one before the last, and the second
	// one of the Gateway.
	owners[sets][each-1] = fmt.Sprintf("late o%d-%d.example.com:80 HTTP", sets-1, each-1)
	owners[2][0] = "second o0-63.example.com:80 HTTP"
	r := Build(snapshotOf(t, owners...), Options{})
	if got := len(r.Listeners); got != (1+sets)*each {
		t.Errorf("%d listeners, want %d", got, (1+sets)*each)
	}
	got := problems(r)
	want := map[string]string{
		"late":   fmt.Sprintf(`HostnameConflict: Hostname "o%d-%d.example.com" on port 80 is claimed by another ListenerSet, which takes precedence.`, sets-1, each-1),
		"second": `HostnameConflict: Hostname "o0-63.example.com" on port 80 is claimed by listener "l0-63" of Gateway infra/shared, which takes precedence.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
	if got := r.AttachedListenerSets(); got != sets {
		t.Errorf("%d sets attached, want %d", got, sets)
	}
}
