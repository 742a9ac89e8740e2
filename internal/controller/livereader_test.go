package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// silentReader does not respond until the context ends.
type silentReader struct{}

// Get implements client.Reader.
func (silentReader) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// List implements client.Reader.
func (silentReader) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestReadsFromASilentAPIServerEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := liveReader{silentReader{}}
		if err := live.Get(t.Context(), client.ObjectKey{}, &corev1.Secret{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get returned %v, want DeadlineExceeded", err)
		}
		if err := live.List(t.Context(), &corev1.SecretList{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("List returned %v, want DeadlineExceeded", err)
		}
	})
}
