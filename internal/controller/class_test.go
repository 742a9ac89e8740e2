package controller

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// The controller reads the version of every Gateway API CRD, and the channel of HTTPRoutes.
func TestClassesDependOnTheCRDs(t *testing.T) {
	for channel, want := range map[string]bool{"standard": false, "experimental": true} {
		t.Run(channel, func(t *testing.T) {
			crds, err := manifest.CRDs()
			if err != nil {
				t.Fatal(err)
			}
			scheme := runtime.NewScheme()
			if err := apiextensionsv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			for _, crd := range crds {
				if crd.Name == "httproutes.gateway.networking.k8s.io" {
					crd.Annotations["gateway.networking.k8s.io/channel"] = channel
				}
				builder.WithObjects(crd)
			}
			snapshot := &gateway.ClassSnapshot{BundleVersions: map[string]string{}}
			if err := (&classReconciler{client: builder.Build()}).readCRDs(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			if snapshot.ExperimentalRoutes != want {
				t.Errorf("ExperimentalRoutes is %t, want %t", snapshot.ExperimentalRoutes, want)
			}
			if got := snapshot.BundleVersions["httproutes.gateway.networking.k8s.io"]; got != "v1.6.3" {
				t.Errorf("the bundle version is %q, want v1.6.3", got)
			}
		})
	}
}
