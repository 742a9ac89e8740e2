package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readTimeout is how long a connection waits for the API server.
const readTimeout = 2 * time.Second

// services reads Services for connections. It has no cache, so that a test that changes a Service
// need not wait. While the API server does not answer, the last answer counts, as with kube-proxy.
type services struct {
	mu   sync.Mutex
	last map[client.ObjectKey]lastService
}

type lastService struct {
	service *corev1.Service
	slices  []discoveryv1.EndpointSlice
}

// read returns the Service and its EndpointSlices.
func (s *services) read(ctx context.Context, kube client.Reader, key client.ObjectKey) (*corev1.Service, []discoveryv1.EndpointSlice, error) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	service, slices := &corev1.Service{}, &discoveryv1.EndpointSliceList{}
	err := kube.Get(limited, key, service)
	if err == nil {
		err = kube.List(limited, slices, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[key]
	switch {
	case apierrors.IsNotFound(err):
		delete(s.last, key)
		return nil, nil, fmt.Errorf("the Service %s was not found", key)
	case err == nil:
		if s.last == nil {
			s.last = map[client.ObjectKey]lastService{}
		}
		s.last[key] = lastService{service, slices.Items}
		return service, slices.Items, nil
	case known:
		return last.service, last.slices, nil
	}
	return nil, nil, fmt.Errorf("read Service %s and its EndpointSlices: %w", key, err)
}
