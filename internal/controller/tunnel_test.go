package controller

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

func named(namespace, name string) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{}
	g.Namespace, g.Name = namespace, name
	return g
}

// west names the tunnels of a cluster.
var west = &tunnels{clusterID: "west"}

func TestTunnelName(t *testing.T) {
	if got, want := west.name(named("platform", "shared")), "west-platform-shared"; got != want {
		t.Errorf("name = %q, want %q", got, want)
	}
	longest := strings.Repeat("g", maxNameLength-len("west-platform-"))
	if got, want := west.name(named("platform", longest)), "west-platform-"+longest; got != want {
		t.Errorf("a name that just fits is %q, want %q", got, want)
	}
}

// The name is looked up again for ever, so it must not change with a version.
func TestTunnelNameThatIsCut(t *testing.T) {
	long := named("platform", strings.Repeat("g", 200))
	got := west.name(long)
	if len(got) != maxNameLength || !regexp.MustCompile(`^west-platform-g+.[0-9a-f]{10}$`).MatchString(got) {
		t.Errorf("name = %q of %d characters", got, len(got))
	}
	if again := west.name(long); again != got {
		t.Errorf("name = %q, and then %q", got, again)
	}
}

// Names that do not fit are told apart by their hash. Short ones that meet, as
// of team-a/web and team/a-web, are told apart by their owner's record.
func TestTunnelNamesDiffer(t *testing.T) {
	long := strings.Repeat("g", 200)
	for name, pair := range map[string][2]*gatewayv1.Gateway{
		"the end of a long name":                  {named("platform", long+"a"), named("platform", long+"b")},
		"the namespace":                           {named("team-a", "shared"), named("team-b", "shared")},
		"where the namespace of a long name ends": {named("team-a", long), named("team", "a-"+long)},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := west.name(pair[0]), west.name(pair[1]); a == b {
				t.Errorf("Gateways %s/%s and %s/%s share the tunnel %q", pair[0].Namespace, pair[0].Name, pair[1].Namespace, pair[1].Name, a)
			}
		})
	}
}

func TestTakeover(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": false, "false": false, "True": false} {
		g := named("platform", "shared")
		g.Annotations = map[string]string{state.TakeoverAnnotation: value}
		if got := takeover(g); got != want {
			t.Errorf("takeover of %q = %t, want %t", value, got, want)
		}
	}
	if takeover(named("platform", "shared")) {
		t.Error("a Gateway without the annotation permits the takeover")
	}
}

// Reads of many tunnels are spread, but none comes later than the interval.
func TestNextRead(t *testing.T) {
	ts := &tunnels{driftInterval: 10 * time.Minute, now: func() time.Time { return noon }}
	seen := map[string]bool{}
	for range 100 {
		after := ts.nextRead().Sub(noon)
		if after > 10*time.Minute || after < 8*time.Minute {
			t.Fatalf("the next read is in %s, want between 8m and 10m", after)
		}
		seen[fmt.Sprint(after)] = true
	}
	if len(seen) < 2 {
		t.Error("all reads come at once")
	}
}
