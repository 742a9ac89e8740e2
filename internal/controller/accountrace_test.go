package controller

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// expectedToFail fails the test when the check passes. It marks a known defect.
func expectedToFail(t *testing.T, reason string, check func() error) {
	t.Helper()
	if check() == nil {
		t.Errorf("the check passes, although %s", reason)
	}
}

func TestConcurrentCallersOpenAnAccountOnce(t *testing.T) {
	// Both workers find no open account and connect at the same time. They must then use
	// the same provider, because each provider may have its own request budget.
	var connecting sync.WaitGroup
	connecting.Add(2)
	s := newAccountFixture(t)
	s.connect = func(string, string) (provider.Provider, error) {
		connecting.Done()
		connecting.Wait()
		return fakeprovider.New(), nil
	}
	var opened [2]account
	var workers sync.WaitGroup
	for i := range opened {
		workers.Go(func() {
			opened[i], _ = s.openSource(context.Background(), credentials.Source{Account: "account", Token: "token"})
		})
	}
	workers.Wait()
	expectedToFail(t, "each worker keeps its own provider", func() error {
		if opened[0].provider == nil || opened[0] != opened[1] {
			return errors.New("the workers use two providers")
		}
		return nil
	})
}
