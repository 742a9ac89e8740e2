package envoy

import (
	"fmt"
	"testing"
)

func fromVisitor(address string) string { return "CF-Connecting-IP: " + address }

// visitors returns addresses of both families.
func visitors(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("203.0.113.%d", i)
		if i%2 == 1 {
			all[i] = fmt.Sprintf("2001:db8::%x", i)
		}
	}
	return all
}

// TestClientAffinity shows that each visitor keeps a pod, and that all pods get visitors.
func TestClientAffinity(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"sticky": 5, "free": 5})
	for _, pods := range d {
		for _, p := range pods {
			p.listen(t)
		}
	}
	address := d.serve(t, "connector: {}")
	const n = 200
	for _, visitor := range visitors(n) {
		pods, free := map[string]bool{}, map[string]bool{}
		for range 4 {
			pods[ask(t, address, "sticky", fromVisitor(visitor)).body] = true
			free[ask(t, address, "free", fromVisitor(visitor)).body] = true
		}
		if len(pods) != 1 {
			t.Errorf("visitor %s reached %d pods, want one", visitor, len(pods))
		}
		if len(free) == 1 {
			t.Errorf("visitor %s kept a pod of a Service without affinity", visitor)
		}
	}
	for i, p := range d["sticky"] {
		if got := p.take() / 4; got < n/10 || got > n*3/10 {
			t.Errorf("pod %d has %d of %d visitors, want about a fifth", i, got, n)
		}
	}
}

// TestClientAffinityWithoutAnAddress shows that requests without the header are spread.
func TestClientAffinityWithoutAnAddress(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"sticky": 3})
	for _, p := range d["sticky"] {
		p.listen(t)
	}
	address := d.serve(t, "connector: {}")
	visit(t, address, "sticky", 150, 200)
	for i, p := range d["sticky"] {
		if n := p.take(); n < 25 {
			t.Errorf("pod %d got %d of 150 requests, want about a third", i, n)
		}
	}
}

// TestClientAffinityOfARefusingPod shows that only the pod's own visitors change their
// pod, and that they then keep the new one.
func TestClientAffinityOfARefusingPod(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"sticky": 4})
	for _, p := range d["sticky"][1:] {
		p.listen(t)
	}
	address := d.serve(t, "connector: {}")
	reached := map[string]map[string]bool{}
	for round := range 4 {
		for _, visitor := range visitors(100) {
			o := ask(t, address, "sticky", fromVisitor(visitor))
			if o.status != 200 {
				t.Fatalf("visitor %s: status %d, want 200", visitor, o.status)
			}
			if round > 0 { // the first requests lead to the ejection
				if reached[visitor] == nil {
					reached[visitor] = map[string]bool{}
				}
				reached[visitor][o.body] = true
			}
		}
	}
	d["sticky"][0].listen(t)
	for visitor, pods := range reached {
		if len(pods) != 1 {
			t.Errorf("visitor %s reached %d pods, want one", visitor, len(pods))
		}
		if o := ask(t, address, "sticky", fromVisitor(visitor)); !pods[o.body] {
			t.Errorf("visitor %s changed the pod while the other one is left out", visitor)
		}
	}
}

// TestClientAffinityOfWeightedServices shows that the weights hold, and that a visitor
// keeps one pod of each Service.
func TestClientAffinityOfWeightedServices(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"sticky-old": 3, "sticky-new": 3})
	for _, pods := range d {
		for _, p := range pods {
			p.listen(t)
		}
	}
	address := d.serve(t, "connector: {}", `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: split}
spec:
  parentRefs: [{name: shared}]
  hostnames: [split.example.com]
  rules: [{backendRefs: [{name: sticky-old, port: 80, weight: 3}, {name: sticky-new, port: 80}]}]`)
	for _, visitor := range visitors(3) {
		pods := map[string]int{}
		for range 200 {
			pods[ask(t, address, "split", fromVisitor(visitor)).body]++
		}
		if len(pods) != 2 {
			t.Errorf("visitor %s reached %d pods of two Services, want two", visitor, len(pods))
		}
	}
	older, newer := 0, 0
	for i := range 3 {
		older, newer = older+d["sticky-old"][i].take(), newer+d["sticky-new"][i].take()
	}
	if newer < 100 || newer > 200 {
		t.Errorf("the Services got %d and %d requests, want 3 to 1", older, newer)
	}
}
