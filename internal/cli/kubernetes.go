package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clientConfig finds the API server as kubectl does: in the files, which are
// separated as in $KUBECONFIG; without any in those of $KUBECONFIG, then in
// ~/.kube/config, then in the pod that it runs in. Of a kubeconfig it takes the
// context, the current one when it is empty.
func clientConfig(files, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	switch files := filepath.SplitList(files); len(files) {
	case 0:
	case 1:
		rules.ExplicitPath = files[0] // one that is missing is an error
	default:
		rules.Precedence = files
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}

// errNoCluster says in people's words what clientcmd does not.
var errNoCluster = errors.New("there is no API server to talk to: give --kubeconfig; $KUBECONFIG and ~/.kube/config name none, and this is no pod")

// restConfig returns a connection with a limit of requests per second, on
// average and at once.
func restConfig(from clientcmd.ClientConfig, qps float32, burst int) (*rest.Config, error) {
	c, err := from.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("finding the API server (see --kubeconfig): %w", err)
	}
	c.QPS, c.Burst = qps, burst
	c.UserAgent = "tunnel-gateway/" + version
	return c, nil
}
