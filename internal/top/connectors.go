package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

const (
	// scrapeTimeout limits the time for reading one connector's metrics.
	scrapeTimeout = 15 * time.Second
	// concurrency is how many connectors are read at the same time.
	concurrency = 8
)

// Connectors reads the connectors' metrics.
type Connectors struct {
	pods typedcorev1.PodInterface
	// namespace contains the pods.
	namespace string
	// gateway selects one Gateway's connectors, unless its name is empty.
	gateway types.NamespacedName
	forward *forwarder
	// get reads a path at a pod's port.
	get func(ctx context.Context, pod *corev1.Pod, port int, path string) (*http.Response, error)
}

// NewConnectors returns the Gateway's connectors in the namespace, or all connectors there if
// the Gateway has no name. The caller closes them.
func NewConnectors(config *rest.Config, namespace string, gateway types.NamespacedName) (*Connectors, error) {
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &Connectors{pods: client.Pods(namespace), namespace: namespace, gateway: gateway}
	c.forward = &forwarder{
		config: config, connections: map[types.UID]httpstream.Connection{},
		url: func(pod *corev1.Pod) *url.URL {
			return client.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
		},
	}
	c.get = c.forward.get
	return c, nil
}

// Close closes the connections to the pods.
func (c *Connectors) Close() { c.forward.close() }

// Reading contains the connectors' metrics at one time.
type Reading struct {
	connectors map[types.UID]connectorReading
	problems   []string
}

// connectorReading contains one connector's metrics.
type connectorReading struct {
	gateway string
	scrape  scrape
}

// Read reads the metrics from all connectors with an Envoy. It returns an error if it could
// read none.
func (c *Connectors) Read(ctx context.Context) (Reading, error) {
	pods, err := c.list(ctx)
	if err != nil {
		return Reading{}, err
	}
	reading := Reading{connectors: map[types.UID]connectorReading{}}
	errs := make([]error, len(pods))
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i := range pods {
		group.Go(func() error {
			s, err := c.scrape(ctx, &pods[i])
			if err != nil {
				errs[i] = fmt.Errorf("pod %s: %w", pods[i].Name, err)
				return nil // the others are still read
			}
			mu.Lock()
			defer mu.Unlock()
			reading.connectors[pods[i].UID] = connectorReading{gateway: connector.GatewayOf(&pods[i]).String(), scrape: s}
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return Reading{}, err
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == len(pods) {
		return Reading{}, allFailed(errs)
	}
	for _, err := range errs {
		reading.problems = append(reading.problems, fmt.Sprintf("Not counted: %s", err))
	}
	return reading, nil
}

// allFailed returns the error if no connector's metrics could be read. The others
// usually failed for the same reason as the first.
func allFailed(errs []error) error {
	if len(errs) == 1 {
		return fmt.Errorf("read the metrics: %w", errs[0])
	}
	return fmt.Errorf("read the metrics from %d connectors: %w", len(errs), errs[0])
}

// list returns the running connectors that have an Envoy.
func (c *Connectors) list(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.pods.List(ctx, metav1.ListOptions{LabelSelector: connector.PodSelector(c.gateway)})
	if err != nil {
		return nil, fmt.Errorf("list the connectors: %w", err)
	}
	pods := list.Items
	if len(pods) == 0 {
		return nil, fmt.Errorf("no connector%s found in namespace %s; if the controller runs in another namespace, set --controller-namespace", c.ofGateway(), c.namespace)
	}
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !connector.HasEnvoy(&pod) })
	if len(pods) == 0 {
		return nil, fmt.Errorf("no connector%s has an Envoy: the data plane is IngressRules, with which cloudflared counts requests only by tunnel", c.ofGateway())
	}
	count := len(pods)
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
	})
	if len(pods) == 0 {
		return nil, fmt.Errorf("no connector%s runs; %d in namespace %s are pending, stopping or have ended", c.ofGateway(), count, c.namespace)
	}
	return pods, nil
}

// ofGateway names the selected Gateway for a message.
func (c *Connectors) ofGateway() string {
	if c.gateway.Name == "" {
		return ""
	}
	return " for Gateway " + c.gateway.String()
}

var errLoopback = errors.New("the Envoy serves no metrics, because connector.metrics is Loopback in the TunnelConfiguration")

// scrape reads the metrics from the Envoy in the pod.
func (c *Connectors) scrape(ctx context.Context, pod *corev1.Pod) (scrape, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scrapeTimeout, fmt.Errorf("no response after %s", scrapeTimeout))
	defer cancel()
	response, err := c.get(ctx, pod, envoy.PortReady, "/stats/prometheus")
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return scrape{}, cause
	}
	if err != nil {
		return scrape{}, err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		return parse(response.Body, time.Now())
	case http.StatusNotFound:
		return scrape{}, errLoopback
	}
	return scrape{}, fmt.Errorf("the Envoy responded with %s", response.Status)
}
