package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

func TestStart(t *testing.T) {
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
		if err := admin.Create(t.Context(), gateway("valid", gatewayv1.HTTPProtocolType, nil)); err != nil {
			t.Error(err)
		}
	})
	t.Run("the CRD's rules are enforced", func(t *testing.T) {
		tls := &gatewayv1.ListenerTLSConfig{}
		err := admin.Create(t.Context(), gateway("invalid", gatewayv1.HTTPProtocolType, tls))
		if err == nil || !strings.Contains(err.Error(), "tls must not be specified for protocols") {
			t.Errorf("a HTTP listener with TLS: got error %v, want it refused", err)
		}
	})
}

// kubeconfigClient connects through the file that the cluster writes.
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
	if err := gatewayv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

func gateway(name string, protocol gatewayv1.ProtocolType, tls *gatewayv1.ListenerTLSConfig) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "example",
			Listeners:        []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: protocol, TLS: tls}},
		},
	}
}
