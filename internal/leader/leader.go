// Package leader provides the lock for the leader election. A replica with outdated caches does
// not get it.
package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestTimeout is half of the time within which the leader must renew the Lease, so that one
// request without an answer does not cost the leadership.
const requestTimeout = 5 * time.Second

// ErrRestored means that the API server returned an older Lease than before, so its data was
// restored from a backup. The API server then uses resource versions again, and watches miss
// these changes without an error: the caches are outdated until the process restarts.
var ErrRestored = errors.New("the controller must restart because the API server's data was restored from a backup")

// Lock is the leader's Lease. After a restore, each call returns [ErrRestored], so that this
// replica does not lead with outdated caches.
type Lock struct {
	*resourcelock.LeaseLock
	versions *versions
}

// NewLock returns the lock for the Lease. It returns an error if the client's configuration is
// invalid or the host's name is unknown.
func NewLock(kube *rest.Config, lease types.NamespacedName) (*Lock, error) {
	kube = rest.AddUserAgent(kube, "leader-election")
	kube.Timeout = requestTimeout
	kubernetes, err := coordinationclient.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("set up the leader election: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("set up the leader election: %w", err)
	}
	return newLock(kubernetes, lease, host+"_"+string(uuid.NewUUID())), nil
}

func newLock(kubernetes coordinationclient.LeasesGetter, lease types.NamespacedName, identity string) *Lock {
	seen := &versions{older: make(chan struct{})}
	return &Lock{versions: seen, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
		Client:     leases{kubernetes, seen},
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
}

// Record sets the recorder for events about a new leader. The caller calls it before the election.
func (l *Lock) Record(events record.EventRecorder) { l.LockConfig.EventRecorder = events }

// Watch returns [ErrRestored] after a restore, or nil when the context ends.
func (l *Lock) Watch(ctx context.Context, _ client.Reader, _ func() bool) error {
	select {
	case <-l.versions.older:
		return ErrRestored
	case <-ctx.Done():
		return nil
	}
}

// versions compares the Lease's resource versions. It needs no mutex, because the elector sends
// one request at a time.
type versions struct {
	latest string
	older  chan struct{} // closed after a restore
}

// check records the Lease's version, or returns [ErrRestored]. Without a restore, a version is
// never lower than the one before, even if the Lease was deleted and created again, because the
// API server does not answer these requests from its cache.
func (v *versions) check(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return nil, err
	}
	if v.isRestored() {
		return nil, ErrRestored
	}
	// A version that is not a number, such as the first empty one, cannot be compared.
	if order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, v.latest); err == nil && order < 0 {
		close(v.older)
		return nil, fmt.Errorf("%w: version %s of Lease %s/%s follows version %s",
			ErrRestored, lease.ResourceVersion, lease.Namespace, lease.Name, v.latest)
	}
	v.latest = lease.ResourceVersion
	return lease, nil
}

// isRestored reports whether check has found an older version.
func (v *versions) isRestored() bool {
	select {
	case <-v.older:
		return true
	default:
		return false
	}
}

// leases checks the version of each Lease that the API server returns.
type leases struct {
	coordinationclient.LeasesGetter
	versions *versions
}

func (l leases) Leases(namespace string) coordinationclient.LeaseInterface {
	return checkedLeases{l.LeasesGetter.Leases(namespace), l.versions}
}

type checkedLeases struct {
	coordinationclient.LeaseInterface
	versions *versions
}

func (l checkedLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.versions.check(l.LeaseInterface.Get(ctx, name, o))
}

func (l checkedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.versions.check(l.LeaseInterface.Create(ctx, lease, o))
}

func (l checkedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.versions.check(l.LeaseInterface.Update(ctx, lease, o))
}
