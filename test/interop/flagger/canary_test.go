package flagger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

// canary is the application shop in its own namespace, which Flagger releases.
type canary struct {
	*bed
	namespace, host, gateway string
	visits                   visits
}

// application contains a team's objects, besides the Canary.
const application = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE, labels: {data-plane: LABEL}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: app
        image: docker.io/test/app:1
        env: [{name: VERSION, value: "1"}]
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /received, port: 8080}, periodSeconds: 1}
`

// The samples with a Canary.
const (
	webhookSample = "canary/10-shop.yaml"
	metricsSample = "canary/21-shop-metrics.yaml"
)

// setup describes how a test's Canary differs from the sample.
type setup struct {
	// parent is the parentRef, and names the Gateway platform/envoy by default.
	parent map[string]any
	// gateway is the Gateway that serves the route, envoy by default.
	gateway string
	// label is the value of the namespace label data-plane.
	label string
	// objects are manifests for additional objects.
	objects string
	// sample is the file with the Canary, canary/10-shop.yaml by default.
	sample string
	// check is the webhook's result, pass by default. The other sample has no webhook.
	check string
	// analysis replaces fields in the analysis. A nil value removes the field.
	analysis map[string]any
}

// newCanary creates an application and the sample's Canary with the changes, and waits
// until visitors reach the application.
func (b *bed) newCanary(t *testing.T, namespace string, s setup) *canary {
	t.Helper()
	c := &canary{bed: b, namespace: namespace, host: namespace + ".example.com", gateway: cmp.Or(s.gateway, "envoy")}
	b.apply(t, strings.NewReplacer("NAMESPACE", namespace, "LABEL", cmp.Or(s.label, "none")).Replace(application))
	b.apply(t, s.objects)
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(readSample(t, cmp.Or(s.sample, webhookSample))), &object.Object))
	object.SetNamespace(namespace)
	parent := s.parent
	if parent == nil {
		parent = map[string]any{"name": c.gateway, "namespace": "platform"}
	}
	set := func(value any, path ...string) {
		t.Helper()
		must(t, unstructured.SetNestedField(object.Object, value, append([]string{"spec"}, path...)...))
	}
	set([]any{c.host}, "service", "hosts")
	set([]any{parent}, "service", "gatewayRefs")
	set("10s", "analysis", "interval") // Flagger's minimum
	set(int64(1), "analysis", "threshold")
	if s.sample == metricsSample {
		set(withInterval(t, object), "analysis", "metrics")
	} else {
		set([]any{map[string]any{"name": "checkout", "type": "rollout", "url": b.checks + "/" + cmp.Or(s.check, "pass")}}, "analysis", "webhooks")
	}
	for field, value := range s.analysis {
		if value == nil {
			unstructured.RemoveNestedField(object.Object, "spec", "analysis", field)
			continue
		}
		set(value, "analysis", field)
	}
	must(t, b.kube.Create(t.Context(), object))
	c.waitForPhase(t, "Initialized")
	eventually(t, "visitors reach the application", func() (bool, string) {
		answer := c.visit(t.Context()).text
		return answer == "1", answer
	})
	return c
}

// withInterval returns the Canary's metrics, over the last ten seconds.
func withInterval(t *testing.T, object *unstructured.Unstructured) []any {
	t.Helper()
	metrics, _, err := unstructured.NestedSlice(object.Object, "spec", "analysis", "metrics")
	must(t, err)
	for _, metric := range metrics {
		metric.(map[string]any)["interval"] = "10s"
	}
	return metrics
}

// release changes the application's version to 2, with further environment variables.
func (c *canary) release(t *testing.T, variables ...corev1.EnvVar) {
	t.Helper()
	deployment := &unstructured.Unstructured{}
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	deployment.SetNamespace(c.namespace)
	deployment.SetName("shop")
	patch, err := json.Marshal([]map[string]any{{
		"op": "replace", "path": "/spec/template/spec/containers/0/env", "value": append(variables, corev1.EnvVar{Name: "VERSION", Value: "2"}),
	}})
	must(t, err)
	must(t, c.kube.Patch(t.Context(), deployment, client.RawPatch(types.JSONPatchType, patch)))
}

// status returns a field in the Canary's status, as text.
func (c *canary) status(ctx context.Context, field string) (string, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("flagger.app/v1beta1")
	object.SetKind("Canary")
	err := c.kube.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "shop"}, object)
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", field)
	return fmt.Sprint(value), err
}

// waitForStatus waits until a field in the Canary's status has the value.
func (c *canary) waitForStatus(t *testing.T, field, want string) {
	t.Helper()
	eventually(t, c.namespace+": the "+field+" of the Canary is "+want, func() (bool, string) {
		got, err := c.status(t.Context(), field)
		return got == want, fmt.Sprintf("%s (%v)", got, err)
	})
}

func (c *canary) waitForPhase(t *testing.T, want string) {
	t.Helper()
	c.waitForStatus(t, "phase", want)
}

// warnings returns the messages in Flagger's warnings about the Canary.
func (c *canary) warnings(t *testing.T) []string {
	t.Helper()
	events := &corev1.EventList{}
	must(t, c.kube.List(t.Context(), events, client.InNamespace(c.namespace)))
	var messages []string
	for _, event := range events.Items {
		if event.InvolvedObject.Kind == "Canary" && event.Type == corev1.EventTypeWarning {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// waitForWarning waits for a Flagger warning that contains the text.
func (c *canary) waitForWarning(t *testing.T, text string) {
	t.Helper()
	eventually(t, c.namespace+": a warning contains "+strconv.Quote(text), func() (bool, string) {
		all := strings.Join(c.warnings(t), "\n")
		return strings.Contains(all, text), all
	})
}

// route returns the HTTPRoute that Flagger has created.
func (c *canary) route(t *testing.T) *gatewayv1.HTTPRoute {
	t.Helper()
	route := &gatewayv1.HTTPRoute{}
	must(t, c.kube.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "shop"}, route))
	return route
}

// checkParents checks that Flagger finds the status for each parentRef, which it compares
// deeply, and that the route is accepted in its current generation.
func (c *canary) checkParents(t *testing.T) {
	t.Helper()
	route := c.route(t)
	if len(route.Spec.ParentRefs) != 1 || len(route.Status.Parents) != 1 {
		t.Fatalf("%s: the route has %d parentRefs and %d statuses, want 1", c.namespace, len(route.Spec.ParentRefs), len(route.Status.Parents))
	}
	status := route.Status.Parents[0]
	if !reflect.DeepEqual(status.ParentRef, route.Spec.ParentRefs[0]) {
		t.Errorf("%s: the status is of the parentRef %+v, want %+v", c.namespace, status.ParentRef, route.Spec.ParentRefs[0])
	}
	accepted := meta.FindStatusCondition(status.Conditions, string(gatewayv1.RouteConditionAccepted))
	if accepted == nil || accepted.Status != "True" || accepted.ObservedGeneration != route.Generation {
		t.Errorf("%s: the condition Accepted is %+v, want True at generation %d", c.namespace, accepted, route.Generation)
	}
	for _, warning := range c.warnings(t) {
		if strings.Contains(warning, "is not ready (status") {
			t.Errorf("%s: Flagger had to wait for the route: %s", c.namespace, warning)
		}
	}
}

// received counts the requests that the new version has received.
func (c *canary) received(ctx context.Context) (int, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.pods.Dial(ctx, network, address)
		},
	}
	url := fmt.Sprintf("http://shop-canary.%s.svc.cluster.local:8080/received", c.namespace)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// eventually waits until the check succeeds. If it does not, the test fails with the last
// state that the check has found.
func eventually(t *testing.T, name string, check func() (ok bool, state string)) {
	t.Helper()
	var state string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		var ok bool
		ok, state = check()
		return ok, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last: %s", name, err, state)
	}
}
