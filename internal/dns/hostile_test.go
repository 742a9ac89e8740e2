package dns_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
