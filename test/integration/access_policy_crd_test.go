package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

const accessPolicies = "accesspolicies.tunnelgateway.dev"

// TestControllerServesWithoutTheCRDOfAccessPolicies upgrades a controller before its CRDs,
// and removes the CRD while the controller runs.
func TestControllerServesWithoutTheCRDOfAccessPolicies(t *testing.T) {
	if kubeconfig != "" {
		return // this process runs only a part of the suite
	}
	c := startClusterWithoutAccessPolicies(t)
	log := c.runController(t)
	c.expect(t, "the Gateway to be accepted", c.isAccepted)
	if !strings.Contains(log.String(), "AccessPolicies are unknown: their CRD is missing") {
		t.Errorf("the log does not say that the CRD is missing:\n%s", log)
	}
	c.stop(t)

	c.installAccessPolicies(t)
	log = c.runController(t)
	c.createPolicy(t)
	c.expect(t, "the status of the AccessPolicy", c.reportsPolicy)
	if err := c.kube.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: accessPolicies}}); err != nil {
		t.Fatal(err)
	}
	c.expect(t, "the removal of the CRD in the log", func(context.Context) error {
		if !strings.Contains(log.String(), "AccessPolicies are unknown; no protection by Cloudflare Access ends") {
			return errors.New(log.String())
		}
		return nil
	})
	c.stop(t)
}

// policyCluster is a control plane with a Gateway and, at most, one AccessPolicy.
type policyCluster struct {
	kube    client.Client
	config  string // the path to the kubeconfig
	process *controllerproc.Process
}

func startClusterWithoutAccessPolicies(t *testing.T) *policyCluster {
	t.Helper()
	control, err := cluster.Start(t.Context(), cluster.Options{CRDs: func(all []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
		return slices.DeleteFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == accessPolicies })
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &policyCluster{config: filepath.Join(t.TempDir(), "kubeconfig"), kube: newPolicyClient(t, control.Config)}
	if err := control.Kubeconfig(c.config); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}},
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: config.DefaultControllerName}},
		&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "tunnel", Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		}},
	} {
		if err := c.kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func newPolicyClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := controller.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// logBuffer collects the controller's log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// runController starts a controller that cannot reach Cloudflare.
func (c *policyCluster) runController(t *testing.T) *logBuffer {
	t.Helper()
	log := &logBuffer{}
	process, err := controllerproc.Start(controllerproc.Options{
		Binary: binary, Kubeconfig: c.config, ControllerNamespace: cluster.ControllerNamespace, ClusterID: "policies",
		Cloudflare: "http://127.0.0.1:1/client/v4", Output: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.process = process
	t.Cleanup(process.Kill)
	return log
}

func (c *policyCluster) stop(t *testing.T) {
	t.Helper()
	if err := c.process.Stop(); err != nil {
		t.Error(err)
	}
}

// installAccessPolicies installs the CRD and waits until the API server serves it.
func (c *policyCluster) installAccessPolicies(t *testing.T) {
	t.Helper()
	all, err := manifest.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if crd.Name != accessPolicies {
			continue
		}
		if err := c.kube.Create(t.Context(), crd.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	c.expect(t, "the API server to serve AccessPolicies", func(ctx context.Context) error { return c.kube.List(ctx, &v1alpha1.AccessPolicyList{}) })
}

// createPolicy creates an AccessPolicy for a ListenerSet that does not exist.
func (c *policyCluster) createPolicy(t *testing.T) {
	t.Helper()
	policy := &v1alpha1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "admin"}, Spec: v1alpha1.AccessPolicySpec{
		Policies: []v1alpha1.PolicyName{"employees"},
		TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
			Group: gatewayv1.GroupName, Kind: "ListenerSet", Name: "missing",
		}}},
	}}
	if err := c.kube.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
}

func (c *policyCluster) isAccepted(ctx context.Context) error {
	var g gatewayv1.Gateway
	if err := c.kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, &g); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(g.Status.Conditions, string(gatewayv1.GatewayConditionAccepted)) {
		return fmt.Errorf("conditions %v", g.Status.Conditions)
	}
	return nil
}

// reportsPolicy returns nil if the policy's target is its own ancestor.
func (c *policyCluster) reportsPolicy(ctx context.Context) error {
	var policy v1alpha1.AccessPolicy
	if err := c.kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: "admin"}, &policy); err != nil {
		return err
	}
	for _, entry := range policy.Status.Ancestors {
		if accepted := meta.FindStatusCondition(entry.Conditions, "Accepted"); entry.AncestorRef.Name == "missing" && accepted != nil && accepted.Reason == "TargetNotFound" {
			return nil
		}
	}
	return fmt.Errorf("status %v", policy.Status)
}

// expect waits until check returns nil.
func (c *policyCluster) expect(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waited for %s: %v", what, last)
	}
}
