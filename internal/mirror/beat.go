package mirror

import (
	"context"
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
)

// beat checks the connection and refreshes what is not watched, until ctx ends.
func (m *Mirror) beat(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch wasLost := m.setLost(m.ping(ctx)); {
		case m.Lost() != nil:
		case wasLost: // the watches may wait for long until they connect again
			m.reset()
		default:
			m.retryRefused(time.Now().Add(-maxRefused))
			m.repeatGets(ctx)
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
