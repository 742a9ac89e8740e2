package status

import (
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

func TestFailedWritesAreForgotten(t *testing.T) {
	// They are forgotten with their owner, and when the owner's last failed write
	// succeeds.
	unwritten := map[gateway.Owner]int{}
	w := &Writer{Unwritten: func(owner gateway.Owner, count int) { unwritten[owner] = count }}
	gone, written := target{owner: gateway.Owner{Kind: "Gateway"}}, target{owner: gateway.Owner{Kind: "ListenerSet"}}
	for _, t := range []target{gone, written} {
		w.failed.add(w, t, write{}, "1")
	}
	if len(w.failed.byOwner) != 2 {
		t.Fatalf("%d owners with failed writes, want 2", len(w.failed.byOwner))
	}
	w.Forget(gone.owner)
	w.failed.finish(w, written, w.failed.get(written), "2", nil)
	w.failed.finish(w, gone, &failedWrite{}, "2", nil) // a retry that ends after its owner
	if len(w.failed.byOwner) != 0 {
		t.Errorf("%d owners with failed writes, want none", len(w.failed.byOwner))
	}
	for owner, count := range unwritten {
		if count != 0 {
			t.Errorf("%d unwritten statuses of the %s are reported, want none", count, owner.Kind)
		}
	}
}
