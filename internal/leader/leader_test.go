package leader

import (
	"context"
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// apiServer returns the version of the only Lease, which does not exist if it is empty.
type apiServer struct {
	coordinationclient.LeaseInterface
	version string
}

func (s *apiServer) Leases(string) coordinationclient.LeaseInterface { return s }

func (s *apiServer) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if s.version == "" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, name)
	}
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: s.version}}, nil
}

func (s *apiServer) Create(ctx context.Context, _ *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return s.Get(ctx, "", metav1.GetOptions{})
}

func (s *apiServer) Update(ctx context.Context, _ *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return s.Get(ctx, "", metav1.GetOptions{})
}

func TestOldCachesDoNotLeadAfterARestore(t *testing.T) {
	type call func(*Lock) error
	get := func(l *Lock) error { _, _, err := l.Get(t.Context()); return err }
	create := func(l *Lock) error { return l.Create(t.Context(), resourcelock.LeaderElectionRecord{}) }
	update := func(l *Lock) error { return l.Update(t.Context(), resourcelock.LeaderElectionRecord{}) }
	for _, test := range []struct {
		name, before, after string
		first, then         call
		restored            bool
	}{
		{"a replica that waits reads an older Lease", "1000", "999", get, get, true},
		{"more digits are newer", "999", "1000", get, get, false},
		{"an API server without comparable versions", "b", "a", get, get, false},
		{"nothing has changed", "1000", "1000", get, get, false},
		{"the leader has renewed the Lease before", "1000", "900", update, get, true},
		{"the first leader has created the Lease before", "1000", "900", create, get, true},
		{"the Lease is missing in the backup", "1000", "900", get, create, true},
		{"another client has deleted the Lease", "1000", "1001", get, create, false},
		{"the leader renews the Lease", "1000", "1001", create, update, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := &apiServer{version: "1"}
			lock := newLock(server, types.NamespacedName{Namespace: "system", Name: "lease"}, "this replica")
			if err := get(lock); err != nil { // an update requires an earlier read
				t.Fatal(err)
			}
			server.version = test.before
			if err := test.first(lock); err != nil {
				t.Fatal(err)
			}
			server.version = test.after
			if err := test.then(lock); errors.Is(err, ErrRestored) != test.restored || err != nil != test.restored {
				t.Errorf("the next request returned %v, want ErrRestored: %t", err, test.restored)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if !test.restored {
				cancel()
			}
			if err := lock.Watch(ctx, nil, nil); errors.Is(err, ErrRestored) != test.restored {
				t.Errorf("Watch returned %v, want ErrRestored: %t", err, test.restored)
			}
		})
	}
}

func TestReplicaDoesNotLeadUntilItRestarts(t *testing.T) {
	server := &apiServer{version: "1000"}
	lock := newLock(server, types.NamespacedName{Namespace: "system", Name: "lease"}, "this replica")
	for _, step := range []struct {
		version  string
		restored bool
	}{{"1000", false}, {"900", true}, {"1001", true}} {
		server.version = step.version
		if _, _, err := lock.Get(t.Context()); errors.Is(err, ErrRestored) != step.restored {
			t.Errorf("version %s: %v, want ErrRestored: %t", step.version, err, step.restored)
		}
	}
}

func TestMissingLeaseIsNoRestore(t *testing.T) {
	server := &apiServer{version: "1000"}
	lock := newLock(server, types.NamespacedName{Namespace: "system", Name: "lease"}, "this replica")
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.version = ""
	if _, _, err := lock.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
}
