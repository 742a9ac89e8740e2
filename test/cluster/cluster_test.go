package cluster_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

func TestClusterServesAndReconcilesObjects(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin := kubeconfigClient(t, c)

	t.Run("a valid Gateway is accepted", func(t *testing.T) {
		if err := admin.Create(t.Context(), gateway("default", "valid", nil)); err != nil {
			t.Error(err)
		}
	})
	t.Run("the rules of the Gateway CRD are enforced", func(t *testing.T) {
		tls := &gatewayv1.ListenerTLSConfig{}
		err := admin.Create(t.Context(), gateway("default", "invalid", tls))
		if err == nil || !strings.Contains(err.Error(), "tls must not be specified for protocols") {
			t.Errorf("an HTTP listener with TLS: got error %v, want that the API server rejects it", err)
		}
	})
	t.Run("the rules of the TunnelConfiguration CRD are enforced", func(t *testing.T) { testConfigurationRules(t, admin) })
	t.Run("two field managers share the listener configurations of one object", func(t *testing.T) { testSharedConfiguration(t, admin) })
	t.Run("a Deployment creates its Pods", func(t *testing.T) { testDeployment(t, admin) })
	t.Run("an object is deleted with its owner", func(t *testing.T) { testOwner(t, admin) })
	t.Run("a namespace with objects is deleted", func(t *testing.T) { testNamespace(t, admin) })
	t.Run("a Service gets its EndpointSlice", func(t *testing.T) { testEndpointSlice(t, admin) })
}

func testConfigurationRules(t *testing.T, admin client.Client) {
	err := apply(t, admin, "one", `{"connector": {"replicas": 2, "autoscaling": {}}}`)
	if err == nil || !strings.Contains(err.Error(), "connector has both replicas and autoscaling") {
		t.Errorf("replicas together with autoscaling: got error %v, want that the API server rejects it", err)
	}
}

// testSharedConfiguration checks that the whole key identifies an entry, including
// an entry without a hostname.
func testSharedConfiguration(t *testing.T, admin client.Client) {
	for manager, spec := range map[string]string{
		"one": `{"listenerConfigurations": [{"protocolPort": "HTTPS:443", "access": {"required": false}}]}`,
		"two": `{"listenerConfigurations": [{"protocolPort": "HTTPS:443", "hostname": "a.example"}, {"protocolPort": "HTTPS:443", "originRequest": {"connectTimeout": "1m"}}]}`,
	} {
		if err := apply(t, admin, manager, spec); err != nil {
			t.Fatal(err)
		}
	}
	got := &v1alpha1.TunnelConfiguration{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "shared"}, got); err != nil {
		t.Fatal(err)
	}
	listeners := got.Spec.ListenerConfigurations
	if len(listeners) != 2 {
		t.Fatalf("got %d entries, want one for each key: %v", len(listeners), listeners)
	}
	for _, listener := range listeners {
		if listener.Hostname == "" && (listener.Access == nil || listener.OriginRequest == nil) {
			t.Errorf("the entry without a hostname lacks the fields of one field manager: %v", listener)
		}
	}
}

// apply applies a TunnelConfiguration with the spec as the field manager.
func apply(t *testing.T, admin client.Client, manager, spec string) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("TunnelConfiguration"))
	object.SetNamespace("default")
	object.SetName("shared")
	var content map[string]any
	if err := json.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = content
	return admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager))
}

// kubeconfigClient returns a client that uses the cluster's kubeconfig.
func kubeconfigClient(t *testing.T, c *cluster.Cluster) client.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.Kubeconfig(path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(gatewayv1.Install(scheme), clientgoscheme.AddToScheme(scheme), v1alpha1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// gateway returns a Gateway with one HTTP listener.
func gateway(namespace, name string, tls *gatewayv1.ListenerTLSConfig) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "example",
			Listeners:        []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, TLS: tls}},
		},
	}
}
