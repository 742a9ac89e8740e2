package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestServicesAreKnownWithoutTheAPIServer(t *testing.T) {
	var down error
	kube := fake.NewClientBuilder().WithObjects(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if down != nil {
				return down
			}
			return c.Get(ctx, key, object, o...)
		},
	}).Build()
	s, web := &services{}, client.ObjectKey{Namespace: "team", Name: "web"}
	down = errors.New("connection refused")
	if _, _, err := s.read(t.Context(), kube, web); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a Service that was never read: got %v", err)
	}
	for _, down = range []error{nil, down} {
		service, slices, err := s.read(t.Context(), kube, web)
		if err != nil || service.Name != "web" || len(slices) != 1 {
			t.Errorf("with the API server's error %v: got %v, %v and %v", down, service, slices, err)
		}
	}
	down = nil
	if err := kube.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.read(t.Context(), kube, web); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a deleted Service: got %v", err)
	}
	down = errors.New("connection refused")
	if _, _, err := s.read(t.Context(), kube, web); err == nil {
		t.Error("a deleted Service is still known")
	}
}
