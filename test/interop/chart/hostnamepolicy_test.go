package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// policyCluster is a cluster with the chart's admission policies: hostnames for Gateway
// infra/shared, weights in the namespaces with the label in [ingressRulesLabels], and the
// deletion of Gateways.
type policyCluster struct {
	*cluster.Cluster
	kube client.Client
}

func newPolicyCluster(t *testing.T) *policyCluster {
	t.Helper()
	started, err := cluster.Start(t.Context(), cluster.Options{Progress: os.Stderr, CRDs: gatewayAPICRDs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &policyCluster{Cluster: started}
	c.kube = c.clientFor(t, rest.ImpersonationConfig{})
	kubeconfig := filepath.Join(t.TempDir(), "admin")
	if err := c.Kubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	mustHelm(t, "install", release, chartDir, "--namespace", namespace, "--create-namespace", "--kubeconfig", kubeconfig,
		"--set", "hostnamePolicy.enabled=true,hostnamePolicy.gateways[0].namespace=infra,hostnamePolicy.gateways[0].name=shared",
		"--set", weightPolicyValues+",policies.protectGateways=true")
	return c
}

// clientFor returns a client for the user, or for the administrator.
func (c *policyCluster) clientFor(t *testing.T, user rest.ImpersonationConfig) client.Client {
	t.Helper()
	scheme := controller.Scheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = user
	kube, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func (c *policyCluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// listenerSet returns a ListenerSet with one listener that attaches to the Gateway.
func listenerSet(namespace, gatewayName, hostname string) *gatewayv1.ListenerSet {
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Namespace: new(gatewayv1.Namespace("infra")), Name: gatewayv1.ObjectName(gatewayName)}
	set.Spec.Listeners = []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	if hostname != "" {
		set.Spec.Listeners[0].Hostname = new(gatewayv1.Hostname(hostname))
	}
	return set
}

// waitForPolicies waits until the API server enforces the policies.
func (c *policyCluster) waitForPolicies(t *testing.T) {
	t.Helper()
	c.create(t, newNamespace("probe"))
	probe := client.NewDryRunClient(c.kube)
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsInvalid(probe.Create(ctx, listenerSet("probe", "shared", "probe.example.com"))), nil
	})
	if err != nil {
		t.Fatalf("the policy is not enforced: %v", err)
	}
}

func TestAdmissionPolicies(t *testing.T) {
	c := newPolicyCluster(t)
	c.waitForPolicies(t)
	t.Run("the policy of Gateways rejects deletions without an annotation", c.protectsGateways)
	t.Run("the policy of Gateways protects the Gateways of a deleted namespace", c.protectsGatewaysOfDeletedNamespaces)
	t.Run("the policy of weights rejects routes that split requests", c.rejectsSeveralWeights)
	t.Run("the policy decides like the controller", c.decidesLikeTheController)
	t.Run("the policy checks only changes of the spec, for the listed Gateways", c.checksSpecsOfListedGateways)
	t.Run("only a permission for the whole cluster permits changing the annotation", c.protectsTheAnnotation)
}

// decidesLikeTheController runs the cases with which package gateway tests the
// controller.
func (c *policyCluster) decidesLikeTheController(t *testing.T) {
	content, err := os.ReadFile(root + "/internal/hostnames/testdata/permissions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Annotation                       *string
		Hostname, Result, OnlyController string
	}
	if err := yaml.Unmarshal(content, &vectors); err != nil || len(vectors) < 50 {
		t.Fatalf("%d cases: %v", len(vectors), err)
	}
	dryRun := client.NewDryRunClient(c.kube)
	for i, v := range vectors {
		team := newNamespace(fmt.Sprintf("case-%d", i))
		if v.Annotation != nil {
			team.Annotations = map[string]string{hostnames.Annotation: *v.Annotation}
		}
		c.create(t, team)
		err := dryRun.Create(t.Context(), listenerSet(team.Name, "shared", v.Hostname))
		want := map[string]string{"HostnameNotPermitted": "may not use", "UnsupportedValue": "is an IP address"}[v.Result]
		if v.OnlyController != "" {
			want = ""
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("annotation %q, hostname %q: got error %v, want %s %s", team.Annotations, v.Hostname, err, v.Result, v.OnlyController)
		}
	}
}

func (c *policyCluster) checksSpecsOfListedGateways(t *testing.T) {
	team := newNamespace("specs")
	team.Annotations = map[string]string{hostnames.Annotation: "a.example.com"}
	set := listenerSet("specs", "shared", "a.example.com")
	c.create(t, team, set, listenerSet("probe", "other", "any.example.com"))
	team.Annotations = nil
	if err := c.kube.Update(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	set.Labels = map[string]string{"tier": "web"}
	if err := c.kube.Update(t.Context(), set); err != nil {
		t.Errorf("a label cannot change after the permission has ended: %v", err)
	}
	set.Spec.Listeners = append(set.Spec.Listeners, listenerSet("", "", "b.example.com").Spec.Listeners[0])
	set.Spec.Listeners[1].Name = "more"
	want := "namespace specs may not use a.example.com, b.example.com"
	if err := c.kube.Update(t.Context(), set); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an update of the spec: got error %v, want %q", err, want)
	}
	moved := &gatewayv1.ListenerSet{}
	if err := c.kube.Get(t.Context(), client.ObjectKey{Namespace: "probe", Name: "web"}, moved); err != nil {
		t.Fatal(err)
	}
	moved.Spec.ParentRef.Name = "shared"
	if err := c.kube.Update(t.Context(), moved); !apierrors.IsInvalid(err) {
		t.Errorf("a ListenerSet moved to the Gateway: got error %v, want a rejection", err)
	}
	inside := listenerSet("infra", "shared", "inside.example.com")
	inside.Spec.ParentRef.Namespace = nil
	c.create(t, newNamespace("infra"))
	if err := c.kube.Create(t.Context(), inside); !apierrors.IsInvalid(err) {
		t.Errorf("a ListenerSet in the Gateway's namespace: got error %v, want a rejection", err)
	}
}

func (c *policyCluster) protectsTheAnnotation(t *testing.T) {
	all := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	namespaces := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Verbs: []string{"create", "get", "update"}}
	assign := rbacv1.PolicyRule{APIGroups: []string{"tunnelgateway.dev"}, Resources: []string{"hostnames"}, Verbs: []string{"assign"}}
	only := assign
	only.ResourceNames = []string{"team"}
	c.create(t, newNamespace("team"),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "owner"}, Rules: []rbacv1.PolicyRule{all}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "owner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "owner"}, Subjects: users("owner")})
	for name, rules := range map[string][]rbacv1.PolicyRule{"creator": {namespaces}, "steward": {namespaces, assign}, "guardian": {namespaces, only}} {
		c.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: users(name),
		})
	}
	const refused = "may not change the annotation tunnelgateway.dev/hostnames"
	for _, test := range []struct {
		user, subresource string
		want              string
	}{
		{"owner", "", refused}, {"owner", "status", refused}, {"owner", "finalize", refused},
		{"creator", "", refused}, {"creator", "status", refused}, {"creator", "finalize", refused},
		{"steward", "", ""}, {"guardian", "", ""},
	} {
		err := c.annotate(t, c.clientFor(t, rest.ImpersonationConfig{UserName: test.user}), test.subresource)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s changes the annotation through %q: got error %v, want %q", test.user, test.subresource, err, test.want)
		}
	}
	for user, permitted := range map[string]bool{"creator": false, "steward": true, "guardian": false} {
		annotated := newNamespace("new")
		annotated.Annotations = map[string]string{hostnames.Annotation: "*"}
		err := client.NewDryRunClient(c.clientFor(t, rest.ImpersonationConfig{UserName: user})).Create(t.Context(), annotated)
		if (err == nil) != permitted {
			t.Errorf("%s creates a Namespace with the annotation: got error %v", user, err)
		}
	}
	creator := client.NewDryRunClient(c.clientFor(t, rest.ImpersonationConfig{UserName: "creator"}))
	if err := creator.Create(t.Context(), newNamespace("new")); err != nil {
		t.Errorf("a Namespace without the annotation cannot be created: %v", err)
	}
}

// annotate sets the annotation on the Namespace team, through a subresource or "", as a
// dry run.
func (c *policyCluster) annotate(t *testing.T, kube client.Client, subresource string) error {
	t.Helper()
	team := &corev1.Namespace{}
	if err := c.kube.Get(t.Context(), client.ObjectKey{Name: "team"}, team); err != nil {
		t.Fatal(err)
	}
	team.Annotations = map[string]string{hostnames.Annotation: "*.example.com"}
	switch subresource {
	case "":
		return kube.Update(t.Context(), team, client.DryRunAll)
	default:
		return kube.SubResource(subresource).Update(t.Context(), team, client.DryRunAll)
	}
}

func users(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
}
