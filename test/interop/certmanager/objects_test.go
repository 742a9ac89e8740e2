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

// annotations are those of an object, "key=value" each.
type annotations []string

func (a annotations) on(object client.Object) {
	all := map[string]string{}
	for _, one := range a {
		key, value, _ := strings.Cut(one, "=")
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

// fresh reads the object again.
func fresh[T client.Object](object T) T {
	GinkgoHelper()
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// exists reads the object, if it is there.
func exists(object client.Object) bool {
	GinkgoHelper()
	err := kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// change reads the object, changes it and writes it.
func change[T client.Object](object T, how func(T)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := kube.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		how(object)
		return kube.Update(context.Background(), object)
	}).Should(Succeed())
}

// remove deletes the objects and waits until they are gone.
func remove(objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(client.IgnoreNotFound(kube.Delete(context.Background(), object))).To(Succeed())
	}
	for _, object := range objects {
		Eventually(exists).WithArguments(object).Should(BeFalse(), "%T %s", object, object.GetName())
	}
}

// read returns the objects of a file of the samples, in its order.
func read(file string) []client.Object {
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

// apply creates the objects of the files, as kubectl apply does: a field that
// nobody knows is an error, and an object that is there is left as it is.
func apply(files ...string) {
	GinkgoHelper()
	for _, file := range files {
		for _, object := range read(file) {
			err := kube.Create(context.Background(), object, client.FieldValidation(metav1.FieldValidationStrict))
			if !apierrors.IsAlreadyExists(err) {
				Expect(err).NotTo(HaveOccurred(), "%s: %s", file, object.GetName())
			}
		}
	}
}

func (w *world) namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.id + name}}
}

func (w *world) class() *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.id},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(w.controller)},
	}
}

// gateway returns a Gateway "shared" that everybody may attach to, with one
// listener of its own.
func (w *world) gateway(namespace string, listener gatewayv1.Listener, a ...string) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared"},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(w.id),
			AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}},
			Listeners:        []gatewayv1.Listener{listener},
		},
	}
	annotations(a).on(g)
	return g
}

func plain(name, hostname string) gatewayv1.Listener {
	return gatewayv1.Listener{
		Name: gatewayv1.SectionName(name), Hostname: ptr.To(gatewayv1.Hostname(hostname)),
		Port: 80, Protocol: gatewayv1.HTTPProtocolType,
	}
}

// secure returns a listener whose certificate is in the Secret <name>-tls.
func secure(name, hostname string) gatewayv1.Listener {
	l := plain(name, hostname)
	l.Port, l.Protocol = 443, gatewayv1.HTTPSProtocolType
	l.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: gatewayv1.ObjectName(name + "-tls")}}}
	return l
}

// listenerSet returns a set of the Gateway.
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
	annotations(a).on(s)
	return s
}

// route returns a route of the set to the Service of the route's name, and that
// Service.
func route(set *gatewayv1.ListenerSet, name string, hostnames ...gatewayv1.Hostname) (*gatewayv1.HTTPRoute, *corev1.Service) {
	parent := gatewayv1.ParentReference{Kind: ptr.To[gatewayv1.Kind]("ListenerSet"), Name: gatewayv1.ObjectName(set.Name)}
	at := metav1.ObjectMeta{Namespace: set.Namespace, Name: name}
	return &gatewayv1.HTTPRoute{ObjectMeta: at, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{parent}},
		Hostnames:       hostnames,
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name), Port: ptr.To[int32](80)},
		}}}}},
	}}, &corev1.Service{ObjectMeta: at, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

// createRoute creates both that route returns.
func createRoute(set *gatewayv1.ListenerSet, name string, hostnames ...gatewayv1.Hostname) {
	GinkgoHelper()
	r, service := route(set, name, hostnames...)
	create(service, r)
}
