package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
)

// Certificates inspects the certificates in Secrets. Implementations are safe for
// concurrent use.
type Certificates interface {
	// Inspect inspects the certificate in a Secret. It returns false if the Secret does
	// not exist. Implementations do not keep the Secret's data.
	Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error)
}

// retainer is implemented by Certificates and CABundles that keep results from one load to
// the next.
type retainer interface {
	// Retain replaces the objects that the key refers to.
	Retain(key Key, names []types.NamespacedName)
}

// maxInspections limits how many Secrets one load inspects at the same time, and how
// many the process parses at the same time.
const maxInspections = 4

// inspections limits how many Secrets the whole process parses at the same time: each
// takes up to 100 ms CPU time, and the workers load several Gateways at once.
var inspections = inspector{semaphore.NewWeighted(maxInspections), gateway.InspectCertificate}

// inspector inspects a limited number of Secrets at the same time.
type inspector struct {
	limit   *semaphore.Weighted
	inspect func(*corev1.Secret) gateway.Certificate
}

// run inspects the Secret as soon as the limit allows it.
func (i inspector) run(ctx context.Context, secret *corev1.Secret) (gateway.Certificate, error) {
	if err := i.limit.Acquire(ctx, 1); err != nil {
		return gateway.Certificate{}, fmt.Errorf("wait to inspect Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	defer i.limit.Release(1)
	var found gateway.Certificate
	err := recovery.Call(ctx, func() error {
		found = i.inspect(secret)
		return nil
	})
	if err != nil {
		// One tenant's Secret must not prevent reconciling the whole Gateway.
		found = gateway.Certificate{Problem: "has data that the controller cannot validate because of a bug; see the log of the controller"}
	}
	return found, nil
}

// inspection is what Inspect returns.
type inspection struct {
	certificate gateway.Certificate
	exists      bool
}

// inspectAll inspects the certificates in the Secrets that exist. If it fails, it
// returns the error for the first name.
func inspectAll(ctx context.Context, certificates Certificates, names []types.NamespacedName) (map[types.NamespacedName]gateway.Certificate, error) {
	results, errs := make([]inspection, len(names)), make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(maxInspections)
	for i, name := range names {
		group.Go(func() error {
			// The reconciler's recovery does not cover this goroutine.
			errs[i] = recovery.Call(ctx, func() (err error) {
				results[i].certificate, results[i].exists, err = certificates.Inspect(ctx, name)
				return err
			})
			return nil // an error must not hide an earlier name's error
		})
	}
	_ = group.Wait()
	found := map[types.NamespacedName]gateway.Certificate{}
	for i, name := range names {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if results[i].exists {
			found[name] = results[i].certificate
		}
	}
	return found, nil
}

// compareNames orders names by namespace and name.
func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// DirectCertificates reads the Secret at each inspection.
type DirectCertificates struct {
	Reader client.Reader
	// known is nil if every Secret is inspected.
	known *Inspections
}

// Inspect implements Certificates.
func (c DirectCertificates) Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error) {
	secret, err := get(ctx, c.Reader, name, &corev1.Secret{})
	if err != nil || secret == nil {
		return gateway.Certificate{}, false, err
	}
	if found, ok := c.known.lookup(secret); ok {
		return found, true, nil
	}
	found, err := inspections.run(ctx, secret)
	if err == nil {
		c.known.store(secret, found)
	}
	return found, err == nil, err
}

// PermittedCertificates reads each Secret once. It reports a Secret that the user cannot
// read as unchecked, because users of the plan command often have fewer permissions than
// the controller.
type PermittedCertificates struct {
	direct DirectCertificates
	// AssumeMissing treats a Secret that does not exist as a valid certificate.
	AssumeMissing bool

	mu        sync.Mutex
	results   map[types.NamespacedName]inspection
	forbidden []types.NamespacedName
	assumed   []types.NamespacedName
}

// assumedExpiry is when a certificate that is assumed to be valid expires.
var assumedExpiry = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// NewPermittedCertificates returns PermittedCertificates that read with r.
func NewPermittedCertificates(r client.Reader) *PermittedCertificates {
	return &PermittedCertificates{direct: DirectCertificates{Reader: r}, results: map[types.NamespacedName]inspection{}}
}

// Know makes the inspections of Secrets in a cluster use and extend what is known.
func (c *PermittedCertificates) Know(known *Inspections) { c.direct.known = known }

// Inspect implements Certificates. Concurrent calls for one Secret can read it several
// times.
func (c *PermittedCertificates) Inspect(ctx context.Context, name types.NamespacedName) (gateway.Certificate, bool, error) {
	if result, ok := c.lookup(name); ok {
		return result.certificate, result.exists, nil
	}
	certificate, exists, err := c.direct.Inspect(ctx, name)
	switch {
	case apierrors.IsForbidden(err):
		certificate, exists = gateway.Certificate{Unchecked: true}, true
		c.add(&c.forbidden, name)
	case err != nil:
		return gateway.Certificate{}, false, err
	case !exists && c.AssumeMissing:
		certificate, exists = gateway.Certificate{NotAfter: assumedExpiry}, true
		c.add(&c.assumed, name)
	}
	c.store(name, inspection{certificate, exists})
	return certificate, exists, nil
}

func (c *PermittedCertificates) lookup(name types.NamespacedName) (inspection, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	result, ok := c.results[name]
	return result, ok
}

func (c *PermittedCertificates) store(name types.NamespacedName, result inspection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[name] = result
}

// add appends a name to one of the lists.
func (c *PermittedCertificates) add(list *[]types.NamespacedName, name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, name)
}

// sorted returns the names in one of the lists, ordered by namespace and name.
func (c *PermittedCertificates) sorted(list *[]types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(*list, compareNames)
	return slices.Compact(slices.Clone(*list))
}

// Forbidden returns the Secrets that the user cannot read, ordered by namespace and name.
func (c *PermittedCertificates) Forbidden() []types.NamespacedName { return c.sorted(&c.forbidden) }

// Assumed returns the Secrets that do not exist but are treated as valid certificates,
// ordered by namespace and name.
func (c *PermittedCertificates) Assumed() []types.NamespacedName { return c.sorted(&c.assumed) }
