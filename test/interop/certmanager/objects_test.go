package certmanager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The annotations that name an issuer.
const (
	issuerAnnotation        = "cert-manager.io/issuer"
	clusterIssuerAnnotation = "cert-manager.io/cluster-issuer"
)

// annotations are annotations in the form "key=value".
type annotations []string

// replaceIn replaces the object's annotations.
func (a annotations) replaceIn(object client.Object) {
	all := map[string]string{}
	for _, annotation := range a {
		key, value, _ := strings.Cut(annotation, "=")
		all[key] = value
	}
	object.SetAnnotations(all)
}

func create(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(kube.Create(context.Background(), object)).To(Succeed())
	}
}

// get reads the object from the API server.
func get[T client.Object](object T) T {
	GinkgoHelper()
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// exists reads the object and reports whether it exists.
func exists(object client.Object) bool {
	GinkgoHelper()
	err := kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// update reads the object, mutates it and writes it.
func update[T client.Object](object T, mutate func(T)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := kube.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		mutate(object)
		return kube.Update(context.Background(), object)
	}).Should(Succeed())
}

// deleteAll deletes the objects and waits until they no longer exist.
func deleteAll(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(client.IgnoreNotFound(kube.Delete(context.Background(), object))).To(Succeed())
	}
	for _, object := range objects {
		Eventually(exists).WithArguments(object).Should(BeFalse(), "%T %s", object, object.GetName())
	}
}

// readSample returns the objects in a sample file, in order.
func readSample(file string) []client.Object {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(samples, file))
	Expect(err).NotTo(HaveOccurred())
	var objects []client.Object
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			Expect(objects).NotTo(BeEmpty())
			return objects
		}
		Expect(err).NotTo(HaveOccurred(), file)
		objects = append(objects, object)
	}
}

// applySamples creates the objects in the files. Like kubectl, it fails for an
// unknown field. It does not change existing objects.
func applySamples(files ...string) {
	GinkgoHelper()
	for _, file := range files {
		for _, object := range readSample(file) {
			err := kube.Create(context.Background(), object, client.FieldValidation(metav1.FieldValidationStrict))
			if !apierrors.IsAlreadyExists(err) {
				Expect(err).NotTo(HaveOccurred(), "%s: %s", file, object.GetName())
			}
		}
	}
}

// namespace returns a namespace whose name is unique to the environment.
func (e *environment) namespace(suffix string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.id + suffix}}
}

func (e *environment) class() *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: e.id},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(e.controllerName)},
	}
}

// gateway returns a Gateway "shared" with one listener. All namespaces may attach
// ListenerSets to it.
func (e *environment) gateway(namespace string, listener gatewayv1.Listener, a ...string) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared"},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(e.id),
			AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}},
			Listeners:        []gatewayv1.Listener{listener},
		},
	}
	annotations(a).replaceIn(g)
	return g
}

// httpListener returns a listener on port 80.
func httpListener(name, hostname string) gatewayv1.Listener {
	return gatewayv1.Listener{
		Name: gatewayv1.SectionName(name), Hostname: ptr.To(gatewayv1.Hostname(hostname)),
		Port: 80, Protocol: gatewayv1.HTTPProtocolType,
	}
}

// httpsListener returns a listener on port 443 with the Secret <name>-tls.
func httpsListener(name, hostname string) gatewayv1.Listener {
	l := httpListener(name, hostname)
	l.Port, l.Protocol = 443, gatewayv1.HTTPSProtocolType
	l.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: gatewayv1.ObjectName(name + "-tls")}}}
	return l
}

// listenerSet returns a ListenerSet that attaches to the Gateway.
func listenerSet(namespace, name string, parent *gatewayv1.Gateway, listeners []gatewayv1.Listener, a ...string) *gatewayv1.ListenerSet {
	s := &gatewayv1.ListenerSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gatewayv1.ListenerSetSpec{ParentRef: gatewayv1.ParentGatewayReference{
			Namespace: ptr.To(gatewayv1.Namespace(parent.Namespace)), Name: gatewayv1.ObjectName(parent.Name),
		}},
	}
	for _, l := range listeners {
		s.Spec.Listeners = append(s.Spec.Listeners, gatewayv1.ListenerEntry(l))
	}
	annotations(a).replaceIn(s)
	return s
}

// route returns a route on the ListenerSet, and the Service with the same name to which
// it routes requests.
func route(set *gatewayv1.ListenerSet, name string, hostnames ...gatewayv1.Hostname) (*gatewayv1.HTTPRoute, *corev1.Service) {
	parent := gatewayv1.ParentReference{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: gatewayv1.ObjectName(set.Name)}
	meta := metav1.ObjectMeta{Namespace: set.Namespace, Name: name}
	return &gatewayv1.HTTPRoute{ObjectMeta: meta, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{parent}},
		Hostnames:       hostnames,
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name), Port: ptr.To[int32](80)},
		}}}}},
	}}, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// createRoute creates the route and the Service that the function route returns.
func createRoute(set *gatewayv1.ListenerSet, name string, hostnames ...gatewayv1.Hostname) {
	GinkgoHelper()
	r, service := route(set, name, hostnames...)
	create(service, r)
}
