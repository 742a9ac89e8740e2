package controller

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// panickingProvider panics when a configuration is written.
type panickingProvider struct{ provider.Provider }

// Configure implements provider.Provider.
func (panickingProvider) Configure(context.Context, provider.TunnelID, provider.Configuration) (provider.Version, error) {
	panic("a bug")
}

// expectedToFail fails the test when the check passes. It marks a known defect.
func expectedToFail(t *testing.T, reason string, check func() error) {
	t.Helper()
	if check() == nil {
		t.Errorf("the check passes, although %s", reason)
	}
}

// panicVariable is set in the process of a test that reconciles a Gateway with a
// panicking provider.
const panicVariable = "RECONCILE_WITH_PANIC"

func TestPanicDuringAPushDoesNotEndTheProcess(t *testing.T) {
	if os.Getenv(panicVariable) == "" {
		expectedToFail(t, "the lifecycle runs in a goroutine of its own", func() error {
			command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
			command.Env = append(os.Environ(), panicVariable+"=1")
			return command.Run()
		})
		return
	}
	h := newHarness(t)
	h.lifecycle.accounts.connect = func(string, string) (provider.Provider, error) { return panickingProvider{h.cloud}, nil }
	// controller-runtime recovers from a panic in the goroutine of a reconcile.
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = errors.New("recovered")
			}
		}()
		_, err = h.Reconcile(t.Context(), h.key)
		return err
	}()
	if err == nil || err.Error() != "recovered" {
		t.Errorf("got %v, want a panic in the goroutine of the reconcile", err)
	}
}
