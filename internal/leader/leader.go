// Package leader elects the leader among the controller's replicas.
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

// ErrRestored means that the API server has returned an older version of the Lease than before,
// so its data was restored from a backup. Resource versions repeat after that, watches miss
// the changes that have them, and nothing reports it: the caches are out of date until the
// process restarts.
var ErrRestored = errors.New("the controller must restart because the API server's data was restored from a backup")

// Lock is the Lease of the leader. While the API server's data is older than what this replica
// has seen, it returns [ErrRestored], so that a replica with old caches does not lead.
type Lock struct {
	*resourcelock.LeaseLock
	versions *versions
}

// NewLock returns the lock with the Lease's name.
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

// Record sets the recorder for the events about leaders. It must be called before the election.
func (l *Lock) Record(events record.EventRecorder) { l.LockConfig.EventRecorder = events }

// Watch waits, and returns [ErrRestored] when the API server's data was restored, or nil when the
// context ends.
func (l *Lock) Watch(ctx context.Context, _ client.Reader, _ func() bool) error {
	select {
	case <-l.versions.older:
		return ErrRestored
	case <-ctx.Done():
		return nil
	}
}

// versions are the Lease's resource versions that this replica has seen. The elector makes
// one request at a time.
type versions struct {
	latest string
	older  chan struct{} // closed after an older version
}

// check remembers the Lease's version, or returns [ErrRestored]. The API server does not answer
// these requests from its cache, so the versions do not decrease otherwise, not even if the Lease is
// deleted and created again.
func (v *versions) check(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return nil, err
	}
	if v.isRestored() {
		return nil, ErrRestored
	}
	// Nothing is known about a version that is not a number, such as the empty one at first.
	if order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, v.latest); err == nil && order < 0 {
		close(v.older)
		return nil, fmt.Errorf("%w: version %s of Lease %s/%s follows version %s",
			ErrRestored, lease.ResourceVersion, lease.Namespace, lease.Name, v.latest)
	}
	v.latest = lease.ResourceVersion
	return lease, nil
}

// isRestored reports whether an older version has been seen.
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
