package provider_test

import (
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestTurn(t *testing.T) {
	nobodys := provider.TurnOf(t.Context())
	nobodys.Take()
	if nobodys.Taken() {
		t.Error("calls without a turn have had it")
	}
	ctx := provider.WithTurn(t.Context())
	if provider.TurnOf(ctx).Taken() {
		t.Error("a turn has come that was not taken")
	}
	provider.TurnOf(provider.WithTurn(ctx)).Take()
	if !provider.TurnOf(ctx).Taken() {
		t.Error("a turn within a turn is another one")
	}
	if provider.TurnOf(provider.WithTurn(t.Context())).Taken() {
		t.Error("two turns are one")
	}
}
