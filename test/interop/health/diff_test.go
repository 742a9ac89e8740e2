package health

import (
	"encoding/json"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// fieldManager is the field manager in Argo CD's server-side apply.
const fieldManager = "argocd-controller"

// TestControllerChangesNoFieldOfAManifest checks that the controller changes no field in
// a manifest. Argo CD's server-side diff finds no difference. Its client-side diff finds
// defaults that the API server adds to lists, unless the manifest contains them.
func TestControllerChangesNoFieldOfAManifest(t *testing.T) {
	e := newEnvironment(t)
	e.startController()
	withoutDefaults, withDefaults := e.readSamples("00-platform.yaml", "10-team-a.yaml"), e.readSamples("deployment-tools/argo-cd/team-c.yaml")
	manifests := slices.Concat(withoutDefaults, withDefaults)
	for _, manifest := range manifests {
		e.apply(manifest)
	}
	e.expectHealthy("the samples")

	for _, manifest := range manifests {
		e.g.Eventually(func(g Gomega) { // the controller can write a status in between
			live := e.getLive(manifest)
			g.Expect(withoutManagedFields(e.apply(manifest, client.DryRunAll))).To(BeComparableTo(withoutManagedFields(live)))
		}).Should(Succeed(), historyName(manifest))
	}
	var different []string
	for _, manifest := range manifests {
		if manifest.GroupVersionKind().Group == gatewayv1.GroupName && e.mergePatch(manifest, e.getLive(manifest)) != "{}" {
			different = append(different, historyName(manifest))
		}
	}
	e.g.Expect(different).To(ConsistOf(
		"Gateway platform/shared", "HTTPRoute platform/home", "ListenerSet team-a/team-a", "HTTPRoute team-a/web",
	), "the manifests without the defaults of lists")
}

// apply applies a manifest with server-side apply, like Argo CD, and returns the
// resulting object.
func (e *environment) apply(manifest *unstructured.Unstructured, options ...client.ApplyOption) *unstructured.Unstructured {
	e.t.Helper()
	result := manifest.DeepCopy()
	options = append(options, client.FieldOwner(fieldManager), client.ForceOwnership)
	e.g.Expect(e.kube.Apply(e.t.Context(), client.ApplyConfigurationFromUnstructured(result), options...)).To(Succeed())
	return result
}

// getLive returns the object on the API server.
func (e *environment) getLive(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	e.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(manifest.GroupVersionKind())
	e.g.Expect(e.kube.Get(e.t.Context(), client.ObjectKeyFromObject(manifest), live)).To(Succeed())
	return live
}

// withoutManagedFields removes the managed fields, which contain times.
func withoutManagedFields(object *unstructured.Unstructured) map[string]any {
	object.SetManagedFields(nil)
	return object.Object
}

// mergePatch returns Argo CD's client-side diff for custom resources, for an object whose
// last applied configuration is the manifest.
func (e *environment) mergePatch(manifest, live *unstructured.Unstructured) string {
	e.t.Helper()
	desired, err := json.Marshal(manifest)
	e.g.Expect(err).NotTo(HaveOccurred())
	current, err := json.Marshal(live)
	e.g.Expect(err).NotTo(HaveOccurred())
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(desired, desired, current)
	e.g.Expect(err).NotTo(HaveOccurred())
	return string(patch)
}
