package cli

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func TestRequestsAreLimitedOnlyIfConfigured(t *testing.T) {
	kubeconfig := clientcmd.NewDefaultClientConfig(*api.NewConfig(), &clientcmd.ConfigOverrides{ClusterInfo: api.Cluster{Server: "https://127.0.0.1"}})
	unlimited, err := restConfig(kubeconfig, 0, 200)
	if err != nil || unlimited.QPS >= 0 { // client-go replaces 0 by its default limit
		t.Errorf("got %v and a QPS of %v, want a negative QPS, which disables the limit", err, unlimited.QPS)
	}
	limited, err := restConfig(kubeconfig, 0.5, 3)
	if err != nil || limited.QPS != 0.5 || limited.Burst != 3 {
		t.Errorf("got %v, a QPS of %v and a burst of %d, want 0.5 and 3", err, limited.QPS, limited.Burst)
	}
}
