package cluster_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// timeout is how long a test waits for a controller. Deleting a namespace takes five
// seconds, because its controller first waits until all API servers have observed it.
// Everything else takes less than a second.
const timeout = 20 * time.Second

var labels = map[string]string{"app": "echo"}

// testDeployment checks that a Deployment creates a ReplicaSet and its Pods, and
// that they are deleted with it.
func testDeployment(t *testing.T, kube client.Client) {
	g, ns := NewWithT(t), client.InNamespace(namespace(t, kube))
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: string(ns), Name: "echo"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}
	g.Expect(kube.Create(t.Context(), deployment)).To(Succeed())
	var pods corev1.PodList
	g.Eventually(func() ([]corev1.Pod, error) {
		err := kube.List(t.Context(), &pods, ns)
		return pods.Items, err
	}, timeout).Should(HaveLen(2))
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodPending || pod.Spec.ServiceAccountName != "default" {
			t.Errorf("Pod %s is %s with ServiceAccount %q, want it pending with the default one",
				pod.Name, pod.Status.Phase, pod.Spec.ServiceAccountName)
		}
	}
	var sets appsv1.ReplicaSetList
	g.Expect(kube.List(t.Context(), &sets, ns)).To(Succeed())
	g.Expect(sets.Items).To(HaveLen(1))

	g.Expect(kube.Delete(t.Context(), deployment)).To(Succeed())
	g.Eventually(func() (string, error) {
		err := errors.Join(kube.List(t.Context(), &pods, ns), kube.List(t.Context(), &sets, ns))
		return fmt.Sprintf("%d Pods of %d ReplicaSets", len(pods.Items), len(sets.Items)), err
	}, timeout).Should(Equal("0 Pods of 0 ReplicaSets"))
}

// testOwner checks that the garbage collector deletes an object whose owner, a
// custom resource, was deleted.
func testOwner(t *testing.T, kube client.Client) {
	g, ns := NewWithT(t), namespace(t, kube)
	owner := gateway(ns, "owner", nil)
	g.Expect(kube.Create(t.Context(), owner)).To(Succeed())
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: "owned",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: gatewayv1.GroupVersion.String(), Kind: "Gateway", Name: owner.Name, UID: owner.UID,
		}},
	}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}}
	g.Expect(kube.Create(t.Context(), owned)).To(Succeed())
	g.Expect(kube.Create(t.Context(), other)).To(Succeed())

	g.Expect(kube.Delete(t.Context(), owner)).To(Succeed())
	eventuallyGone(t, kube, owned)
	g.Expect(kube.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(Succeed())
}

// testNamespace checks that a namespace with objects can be deleted.
func testNamespace(t *testing.T, kube client.Client) {
	g, name := NewWithT(t), namespace(t, kube)
	inside := gateway(name, "inside", nil)
	g.Expect(kube.Create(t.Context(), inside)).To(Succeed())
	deleted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Expect(kube.Delete(t.Context(), deleted)).To(Succeed())
	eventuallyGone(t, kube, deleted)
	eventuallyGone(t, kube, inside)
}

// testEndpointSlice checks that a Service gets an EndpointSlice with a ready Pod's
// address. It creates the Node and writes the Pod's status.
func testEndpointSlice(t *testing.T, kube client.Client) {
	g, ns := NewWithT(t), namespace(t, kube)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "echo"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "echo", Labels: labels}, Spec: podSpec(),
	}
	pod.Spec.NodeName = node.Name
	g.Expect(kube.Create(t.Context(), node)).To(Succeed())
	g.Expect(kube.Create(t.Context(), service)).To(Succeed())
	g.Eventually(func() error { return kube.Create(t.Context(), pod) }, timeout).Should(Succeed()) // the ServiceAccount may not exist yet
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.244.0.1", PodIPs: []corev1.PodIP{{IP: "10.244.0.1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	g.Expect(kube.Status().Update(t.Context(), pod)).To(Succeed())
	g.Eventually(func() ([]string, error) {
		var slices discoveryv1.EndpointSliceList
		err := kube.List(t.Context(), &slices, client.InNamespace(ns), client.MatchingLabels{discoveryv1.LabelServiceName: "echo"})
		var addresses []string
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
		return addresses, err
	}, timeout).Should(Equal([]string{"10.244.0.1"}))
}

// namespace creates a namespace with a unique name and returns the name.
func namespace(t *testing.T, kube client.Client) string {
	t.Helper()
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := kube.Create(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	return created.Name
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "echo", Image: "example.com/echo"}}}
}

func eventuallyGone(t *testing.T, kube client.Client, object client.Object) {
	t.Helper()
	NewWithT(t).Eventually(func() bool {
		return apierrors.IsNotFound(kube.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}, timeout).Should(BeTrue(), "%s still exists", object.GetName())
}
