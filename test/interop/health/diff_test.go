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

// manager is what Argo CD calls itself when it applies on the server's side.
const manager = "argocd-controller"

// TestNothingHasToBeIgnored: the controller changes nothing that an author has
// written. Argo CD's comparison on the server's side finds no difference; the
// one on its own finds the defaults of lists, which the API server fills in,
// unless the manifest spells them.
func TestNothingHasToBeIgnored(t *testing.T) {
	w := newWorld(t)
	w.start()
	plain, spelled := w.read("00-platform.yaml", "10-team-a.yaml"), w.read("deployment-tools/argo-cd/team-c.yaml")
	manifests := slices.Concat(plain, spelled)
	for _, manifest := range manifests {
		w.apply(manifest)
	}
	w.expectHealthy("the samples")

	for _, manifest := range manifests {
		live := w.live(manifest)
		w.g.Expect(withoutFields(w.apply(manifest, client.DryRunAll))).To(BeComparableTo(withoutFields(live)), nameOf(manifest))
	}
	var different []string
	for _, manifest := range manifests {
		if manifest.GroupVersionKind().Group == gatewayv1.GroupName && w.mergePatch(manifest, w.live(manifest)) != "{}" {
			different = append(different, nameOf(manifest))
		}
	}
	w.g.Expect(different).To(ConsistOf(
		"Gateway platform/shared", "HTTPRoute platform/home", "ListenerSet team-a/team-a", "HTTPRoute team-a/web",
	), "those that leave defaults of lists out")
}

// apply applies a manifest as Argo CD does on the server's side, and returns
// what comes of it.
func (w *world) apply(manifest *unstructured.Unstructured, options ...client.ApplyOption) *unstructured.Unstructured {
	w.t.Helper()
	result := manifest.DeepCopy()
	options = append(options, client.FieldOwner(manager), client.ForceOwnership)
	w.g.Expect(w.kube.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(result), options...)).To(Succeed())
	return result
}

func (w *world) live(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(manifest.GroupVersionKind())
	w.g.Expect(w.kube.Get(w.t.Context(), client.ObjectKeyFromObject(manifest), live)).To(Succeed())
	return live
}

// withoutFields leaves out who owns which field, and when it was written.
func withoutFields(object *unstructured.Unstructured) map[string]any {
	object.SetManagedFields(nil)
	return object.Object
}

// mergePatch returns the difference as Argo CD makes it on the client's side
// for custom resources, of which the last applied manifest is this one too.
func (w *world) mergePatch(manifest, live *unstructured.Unstructured) string {
	w.t.Helper()
	was, err := json.Marshal(manifest)
	w.g.Expect(err).NotTo(HaveOccurred())
	is, err := json.Marshal(live)
	w.g.Expect(err).NotTo(HaveOccurred())
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(was, was, is)
	w.g.Expect(err).NotTo(HaveOccurred())
	return string(patch)
}
