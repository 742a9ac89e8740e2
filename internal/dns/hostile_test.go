package dns_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Two hostnames wait for each other while the nameservers may not have noticed a new
// wildcard: the one is below the other, whose wildcard leads to the first through a chain.
// Then the next read shows the wildcard, and the changes continue.
func TestHostnamesThatWaitForEachOther(t *testing.T) {
	s := newScenario(t)
	s.add(star, "CNAME", "q.y.example.com")
	managed(s, "*.y.example.com", alphaAt)
	s.set(gateway(alpha, "*.y.example.com", "q.y.example.com", "y.example.com"))
	s.run()
	s.set(gateway(alpha, "q.y.example.com", "y.example.com"))
	s.set(gateway(types.NamespacedName{Namespace: alpha.Namespace, Name: "neighbor"}, "*.y.example.com"))
	s.runFor(time.Minute)
	s.wantLog("while nothing is settled")
	s.runFor(20 * time.Minute)
	s.wantLog("later", "create y.example.com alpha", "create q.y.example.com alpha", "move *.y.example.com neighbor")
}

// Nested wildcards, each of which leads to a name below the next one, have more paths than
// can be followed one by one.
func TestNestedChains(t *testing.T) {
	s := newScenario(t)
	parents := []string{zone}
	for i := range 12 {
		parents = append(parents, fmt.Sprintf("level%d.%s", i, parents[i]))
	}
	for i, name := range parents {
		target := alphaAt
		if i+1 < len(parents) {
			target = "x." + parents[i+1]
		}
		s.add("*."+name, "CNAME", target)
	}
	s.set(gateway(alpha, "a.example.com"))
	s.set(gateway(beta, "b.example.com"))
	s.facts.Classes[0].Settings.RequiresPermission = true
	done := make(chan bool)
	go func() {
		defer close(done)
		s.run()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the decision takes longer than ten seconds")
	}
	s.wantLog("at once", "create b.example.com beta")
}

// A hostname with a label of more than 63 characters cannot be looked up. It needs no
// record, and no other change waits for one.
func TestNamesThatCannotBeLookedUp(t *testing.T) {
	s := newScenario(t)
	managed(s, star, alphaAt)
	long := strings.Repeat("x", 64) + "." + www
	s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
	s.set(gateway(alpha, star, long))
	s.set(gateway(beta, www))
	s.run()
	s.wantLog("at once", "create www.example.com beta")
	f := s.finding(alpha, long)
	if f.Reason != conditions.ReasonPending || !strings.Contains(f.Message, "63 characters") {
		t.Errorf("the finding is %+v", f)
	}
}

// Records that Cloudflare refuses delay those of other namespaces by a few requests.
func TestRefusedRecordsDelayNoOtherNamespace(t *testing.T) {
	s := newScenario(t)
	refused := map[string]bool{}
	for i := range 300 {
		refused[fmt.Sprintf("refused-%d.example.com", i)] = true
	}
	s.set(gateway(alpha, slices.Collect(maps.Keys(refused))...))
	s.set(gateway(beta, www))
	for n := 0; s.target(www) == ""; n++ {
		if n > 20 {
			t.Fatalf("no record after %d requests: %v", n, s.calls)
		}
		step := s.next()
		if slices.ContainsFunc(step.Batch.Creates, func(c provider.CNAME) bool { return refused[c.Name] }) {
			s.calls[step.Action]++
			s.facts.Memory = dns.Conclude(s.facts.Memory, step, dns.Result{Uptime: s.facts.Uptime, Err: provider.ErrInvalidRecord})
			continue
		}
		s.execute(step)
	}
}
