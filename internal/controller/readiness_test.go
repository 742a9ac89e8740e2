package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// informer is a fake that only reports whether it has synced.
type informer struct {
	cache.Informer
	synced bool
}

func (i *informer) HasSynced() bool { return i.synced }

func TestReadinessReportsWatchErrors(t *testing.T) {
	services, routes := schema.GroupResource{Resource: "services"}, schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "httproutes"}
	synced, unsynced := &informer{synced: true}, &informer{}
	r := &Readiness{informers: map[schema.GroupResource]cache.Informer{services: unsynced, routes: synced}}
	if err := r.check(routes)(nil); err != nil {
		t.Error(err)
	}
	if err := r.check(services)(nil); err == nil || r.Synced() {
		t.Errorf("got %v and %v before Services have synced, want an error and false", err, r.Synced())
	}
	r.recordWatchError(errors.New("connection refused"))
	r.recordWatchError(fmt.Errorf("failed to list: %w", apierrors.NewForbidden(services, "", errors.New("not granted"))))
	if err := r.check(services)(nil); err == nil || !strings.Contains(err.Error(), "services is forbidden") {
		t.Errorf("got %v, want the error of the API server", err)
	}
	unsynced.synced = true
	if err := r.check(services)(nil); err != nil || !r.Synced() {
		t.Errorf("got %v and %v after the sync, want nil and true", err, r.Synced())
	}
}
