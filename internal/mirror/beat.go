package mirror

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// interval is how often the connection is checked. A watch does not notice that the API
	// server has gone without closing the connection.
	interval = 3 * time.Second
	// patience is how long the API server may take to answer.
	patience = 5 * time.Second
	// maxRefused is how long a Mirror remembers that the user may not list objects, or that
	// the cluster does not have their kind.
	maxRefused = 30 * time.Second
	// maxOutdated is how long listing a kind may fail until the connection counts as lost.
	maxOutdated = 30 * time.Second
)

// beat checks the connection and refreshes what is not watched, until ctx ends.
func (m *Mirror) beat(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var lastRefused time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch wasLost := m.setLost(cmp.Or(m.ping(ctx), m.outdated())); {
		case m.Lost() != nil:
		case wasLost: // the watches may wait for long until they connect again
			m.reset()
		default:
			m.endUnused()
			m.repeatGets(ctx)
			if time.Since(lastRefused) > maxRefused {
				m.retryRefused(ctx)
				lastRefused = time.Now()
			}
		}
	}
}

// outdated returns why some objects are not current; nil if all are.
func (m *Mirror) outdated() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, f := range m.followers {
		if err := f.outdated(time.Now().Add(-maxOutdated)); err != nil {
			return fmt.Errorf("list the objects of kind %s: %w", strings.TrimSuffix(s.kind.Kind, "List"), err)
		}
	}
	return nil
}

// endUnused ends the watches whose objects were not listed for long, such as EndpointSlices
// that one explanation needed.
func (m *Mirror) endUnused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, f := range m.followers {
		if time.Since(f.used) > maxUnused {
			f.stop()
			delete(m.followers, s)
		}
	}
}

// retryRefused forgets refusals if the list is permitted now, or the kind exists now.
func (m *Mirror) retryRefused(ctx context.Context) {
	m.mu.Lock()
	refused := map[selection]*follower{}
	for s, f := range m.followers {
		if f.isRefused() {
			refused[s] = f
		}
	}
	m.mu.Unlock()
	for s, f := range refused {
		if !f.isStillRefused(ctx) {
			m.forget(s, f)
			m.notify()
		}
	}
}

// ping returns an error unless the API server answers with an object or says that the user may
// not read it.
func (m *Mirror) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := m.live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
	if isRefusal(err) || apierrors.IsTooManyRequests(err) {
		return nil
	}
	return err
}

// setLost records why the API server cannot be reached, and reports whether it could not before.
func (m *Mirror) setLost(err error) (wasLost bool) {
	m.mu.Lock()
	wasLost = m.lost != nil
	m.lost = err
	m.mu.Unlock()
	if err != nil && !wasLost {
		m.notify()
	}
	return wasLost
}
