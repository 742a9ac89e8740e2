package fake

import (
	"errors"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/providertest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

func TestAccessContract(t *testing.T) {
	providertest.RunAccess(t, func(*testing.T) providertest.AccessFixture {
		database := access.New(providertest.AccessOptions())
		a := NewAccess(database, "account")
		return providertest.AccessFixture{
			Access: a, Other: NewAccess(database, "account"), Database: database, Account: "account", Restrict: a.Restrict,
		}
	})
}

// TestAccessReturnsScriptedErrors checks that calls fail before or after they take effect.
func TestAccessReturnsScriptedErrors(t *testing.T) {
	database := access.New(access.Options{})
	a := NewAccess(database, "account")
	lost := errors.New("lost")
	a.Fail(OpCreateApplication, lost, nil)
	a.FailAfter(OpDeleteApplication, lost)
	ctx := provider.WithPriority(t.Context(), provider.PriorityAccess)
	spec := provider.ApplicationSpec{Hostname: "www.example.com", Name: "x"}
	if _, err := a.Create(ctx, spec); !errors.Is(err, lost) || len(database.Applications("account")) != 0 {
		t.Errorf("the first call returned %v, and %d applications exist", err, len(database.Applications("account")))
	}
	created, err := a.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Delete(ctx, created); !errors.Is(err, lost) || len(database.Applications("account")) != 0 {
		t.Errorf("a deletion with a lost answer returned %v, and %d applications exist", err, len(database.Applications("account")))
	}
	if calls := a.Calls(OpCreateApplication); len(calls) != 2 || calls[0].Err == nil || calls[1].Spec.Hostname != spec.Hostname || calls[1].Priority != provider.PriorityAccess {
		t.Errorf("recorded %+v", calls)
	}
	if calls := a.Calls(); len(calls) != 3 || calls[2].Last.ID != created.ID {
		t.Errorf("recorded %+v", calls)
	}
}
