package provider

import "testing"

func TestPriority(t *testing.T) {
	if got := PriorityOf(t.Context()); got != PriorityChange {
		t.Errorf("without a word: %d, want PriorityChange", got)
	}
	outer := WithPriority(t.Context(), PriorityDrift)
	if got := PriorityOf(outer); got != PriorityDrift {
		t.Errorf("got %d, want PriorityDrift", got)
	}
	if got := PriorityOf(WithPriority(outer, PriorityChange)); got != PriorityChange {
		t.Errorf("the inner word: %d, want PriorityChange", got)
	}
	if PriorityChange >= PriorityDeletion || PriorityDeletion >= PriorityStart || PriorityStart >= PriorityDrift {
		t.Error("the priorities are not in their order")
	}
}
