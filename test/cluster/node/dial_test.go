package node_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// service returns a Service for the Pod, with the Pod's name. Its port 80 selects
// the Pod's port "http".
func service(pod *corev1.Pod, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Spec: corev1.ServiceSpec{
			Selector: pod.Labels,
			Ports:    []corev1.ServicePort{{Name: "web", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// eventuallyAnswers waits until a request to the address returns the answer.
func eventuallyAnswers(t *testing.T, address, want string) {
	t.Helper()
	NewWithT(t).Eventually(func() (string, error) {
		return get(t.Context(), address, "/")
	}, timeout, 20*time.Millisecond).Should(Equal(want))
}

// eventuallyFails waits until a request to the address fails with the error.
func eventuallyFails(t *testing.T, address, want string) {
	t.Helper()
	NewWithT(t).Eventually(func() error {
		_, err := get(t.Context(), address, "/")
		return err
	}, timeout, 20*time.Millisecond).Should(MatchError(ContainSubstring(want)))
}

func TestServicesSelectADeploymentsPodsInTurn(t *testing.T) {
	t.Parallel()
	template := echo(namespace(t), "echo", nil)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "echo"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
	headless := service(template, func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone })
	headless.Name = "headless"
	create(t, deployment, service(template, nil), headless)
	g := NewWithT(t)
	g.Eventually(func() (int32, error) {
		err := kube.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)
		return deployment.Status.AvailableReplicas, err
	}, timeout).Should(Equal(int32(2)))
	for _, address := range []string{
		"echo." + template.Namespace + ".svc.cluster.local:80", "echo." + template.Namespace + ".svc:80",
		"headless." + template.Namespace + ".svc.cluster.local:8080",
	} {
		g.Eventually(func() (int, error) {
			names := map[string]bool{}
			for range 4 {
				name, err := get(t.Context(), address, "/")
				if err != nil {
					return 0, err
				}
				names[name] = true
			}
			return len(names), nil
		}, timeout).Should(Equal(2), "number of Pods that answer at %s", address)
	}
}

func TestServiceWithoutASelectorUsesItsEndpointSlices(t *testing.T) {
	// Of the three EndpointSlices, only one has a ready endpoint for the port.
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	slice := func(port, ip string, number int32) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: pod.Namespace, Name: port + strconv.Itoa(int(number)), Labels: map[string]string{discoveryv1.LabelServiceName: "manual"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip}}},
			Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
		}
	}
	manual := service(pod, func(s *corev1.ServiceSpec) { s.Selector = nil })
	manual.Name = "manual"
	inside := slice("web", pod.Status.PodIP, 8080)
	unready := slice("web", "10.244.255.254", 8081)
	unready.Endpoints[0].Conditions.Ready = new(false)
	create(t, manual, inside, slice("other", pod.Status.PodIP, 9090), unready)
	name := "manual." + pod.Namespace + ".svc:80"
	if answer, err := get(t.Context(), name, "/"); err != nil || answer != "echo" {
		t.Errorf("with a ready endpoint: got %q, %v", answer, err)
	}
	if err := kube.Delete(t.Context(), inside); err != nil {
		t.Fatal(err)
	}
	if answer, err := get(t.Context(), name, "/"); err == nil {
		t.Errorf("without a ready endpoint: got %q, want an error", answer)
	}
}

func TestDialNamesTheMissingObject(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	external := service(pod, func(s *corev1.ServiceSpec) {
		*s = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	})
	external.Name = "external"
	empty := service(pod, func(s *corev1.ServiceSpec) { s.Selector = map[string]string{"app": "none"} })
	empty.Name = "empty"
	create(t, pod, external, empty)
	eventuallyReady(t, pod)
	for address, want := range map[string]string{
		"none." + pod.Namespace + ".svc:80":     "Service " + pod.Namespace + "/none was not found",
		"empty." + pod.Namespace + ".svc:81":    "has no TCP port 81",
		"empty." + pod.Namespace + ".svc:80":    "has no ready endpoint for port 80",
		"external." + pod.Namespace + ".svc:80": "has type ExternalName",
		"example.com:80":                        "is neither an IP address nor",
		"10.244.255.255:80":                     "no Pod has the address",
		pod.Status.PodIP + ":81":                "has port 81, only [8080 9090]",
	} {
		if _, err := testNode.Dial(t.Context(), "tcp", address); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), address) {
			t.Errorf("dial %s: got error %v, want an error that contains %q", address, err, want)
		}
	}
	if _, err := testNode.Dial(t.Context(), "udp", pod.Status.PodIP+":8080"); err == nil {
		t.Error("dial over UDP: got no error")
	}
}

func TestAddressOutsideThePodNetworkIsDialedDirectly(t *testing.T) {
	listener, address := listenForProcess(t)
	connection, err := testNode.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = accept(t, listener).Close()
	_ = connection.Close()
}
