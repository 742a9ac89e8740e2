package state

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

func TestInspectorInspectsALimitedNumberOfSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		finish := make(chan struct{})
		i := inspector{semaphore.NewWeighted(maxInspections), func(*corev1.Secret) gateway.Certificate {
			running.Add(1)
			<-finish
			running.Add(-1)
			return gateway.Certificate{}
		}}
		results := make(chan error)
		for range 6 {
			go func() {
				_, err := i.run(t.Context(), &corev1.Secret{})
				results <- err
			}()
		}
		for finished, want := range []int32{4, 4, 4, 3, 2, 1, 0} {
			if synctest.Wait(); running.Load() != want {
				t.Errorf("%d inspections run after %d have finished, want %d", running.Load(), finished, want)
			}
			if want > 0 {
				finish <- struct{}{}
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func TestInspectorStopsWaitingWhenTheContextIsCanceled(t *testing.T) {
	i := inspector{semaphore.NewWeighted(0), gateway.InspectCertificate}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.run(ctx, &corev1.Secret{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

// A Secret that the controller cannot check must not prevent reconciling its Gateway.
func TestAPanicIsAProblemOfTheSecret(t *testing.T) {
	calls := 0
	i := inspector{semaphore.NewWeighted(1), func(*corev1.Secret) gateway.Certificate {
		if calls++; calls == 1 {
			panic("a mistake")
		}
		return gateway.Certificate{}
	}}
	for _, want := range []string{"has data that the controller cannot validate because of a bug; see the log of the controller", ""} {
		if found, err := i.run(t.Context(), &corev1.Secret{}); err != nil || found.Problem != want {
			t.Errorf("got %+v, %v, want the problem %q", found, err, want)
		}
	}
}

func TestCertificatesShareTheLimitOfTheProcess(t *testing.T) {
	if err := inspections.limit.Acquire(t.Context(), maxInspections); err != nil {
		t.Fatal(err)
	}
	defer inspections.limit.Release(maxInspections)
	for name, certificates := range map[string]Certificates{
		"DirectCertificates":    DirectCertificates{Reader: emptySecrets{}},
		"PermittedCertificates": NewPermittedCertificates(emptySecrets{}),
		"CachedCertificates":    &CachedCertificates{Metadata: emptySecrets{}, Live: emptySecrets{}, Reads: func(string) bool { return true }},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := certificates.Inspect(ctx, types.NamespacedName{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v while the limit is used up, want %v", name, err, context.Canceled)
		}
	}
}

// emptySecrets is a reader for which every Secret exists.
type emptySecrets struct{ client.Reader }

func (emptySecrets) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}
