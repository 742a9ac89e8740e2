package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// Descriptions for flags that select a cluster and a controller.
const (
	kubeconfigUsage     = "path to a kubeconfig `file` (default $KUBECONFIG, otherwise ~/.kube/config, otherwise the cluster that the command runs in)"
	contextUsage        = "`name` of a context in the kubeconfig (default the current context)"
	controllerNameUsage = "spec.controllerName of the controller's GatewayClasses, as `domain/path`"

	controllerNamespaceUsage = "`namespace` of the controller and of its Tunnels"
	clusterDomainUsage       = "DNS `domain` of the cluster"
)

// clientConfig returns the client configuration that kubectl would use. files is a list
// of kubeconfigs in the format that $KUBECONFIG has. If it is empty, $KUBECONFIG applies,
// otherwise ~/.kube/config, otherwise the pod's service account. context is a context in
// the kubeconfig, or "" for the current context.
func clientConfig(files, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	switch files := filepath.SplitList(files); len(files) {
	case 0:
	case 1:
		rules.ExplicitPath = files[0] // a missing file is an error
	default:
		rules.Precedence = files
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}

// userConfig returns a client configuration without a limit for requests. It hides warnings
// about API versions, which users of commands cannot fix.
func userConfig(config clientcmd.ClientConfig) (*rest.Config, error) {
	c, err := restConfig(config, 0, 0)
	if err == nil {
		c.WarningHandler = rest.NoWarnings{}
	}
	return c, err
}

// connect returns a client for the cluster of a client configuration.
func connect(config clientcmd.ClientConfig) (client.WithWatch, error) {
	c, err := userConfig(config)
	if err != nil {
		return nil, err
	}
	return state.Connect(c)
}

// errNoCluster replaces the clientcmd error, which does not name --kubeconfig.
var errNoCluster = errors.New("no API server found in $KUBECONFIG, ~/.kube/config or a pod's service account; set --kubeconfig")

// restConfig returns a client configuration. qps and burst limit its requests per second:
// on average, and in a burst. qps 0 means no limit.
func restConfig(config clientcmd.ClientConfig, qps float32, burst int) (*rest.Config, error) {
	c, err := config.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("load the kubeconfig (see --kubeconfig): %w", err)
	}
	if c.QPS, c.Burst = qps, burst; qps == 0 {
		c.QPS = -1 // for client-go, 0 means its default limit
	}
	c.UserAgent = "tunnel-gateway/" + version
	return c, nil
}
