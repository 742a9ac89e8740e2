package provider

import "testing"

func TestContextHasTheInnermostPriority(t *testing.T) {
	if got := PriorityOf(t.Context()); got != PriorityChange {
		t.Errorf("default priority: got %d, want PriorityChange", got)
	}
	outer := WithPriority(t.Context(), PriorityDrift)
	if got := PriorityOf(outer); got != PriorityDrift {
		t.Errorf("got %d, want PriorityDrift", got)
	}
	if got := PriorityOf(WithPriority(outer, PriorityChange)); got != PriorityChange {
		t.Errorf("inner priority: got %d, want PriorityChange", got)
	}
	if PriorityChange >= PriorityDeletion || PriorityDeletion >= PriorityStart || PriorityStart >= PriorityDrift ||
		PriorityDrift >= PriorityDNS {
		t.Error("the priorities are not in ascending order")
	}
}
