package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

func TestProgramExitsOnMissingOrUnsupportedCRDs(t *testing.T) {
	// The controller and plan exit with one message about all CRDs that are missing
	// or not supported.
	if kubeconfig != "" {
		return // this process runs only a part of the suite
	}
	control, err := cluster.Start(t.Context(), cluster.Options{CRDs: unsupportedCRDs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	if err := control.Kubeconfig(config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	checkCRDErrors(t, exec.CommandContext(ctx, binary, "plan", "--kubeconfig="+config))
	checkCRDErrors(t, exec.CommandContext(ctx, binary, "controller", "--controller-namespace=gateways", "--leader-election=false", "--metrics-address=0", "--health-address=0",
		"--kubeconfig="+config), "cannot check the version of Gateway API CRDs", `["httproutes.gateway.networking.k8s.io"]`) // in its log
	checkMissingKindError(ctx, t, control.Config, config)
}

// checkCRDErrors checks that the command exits with an error about each CRD that
// is missing or not supported, and that its output contains the additional texts.
func checkCRDErrors(t *testing.T, command *exec.Cmd, additional ...string) {
	t.Helper()
	command.Env = append(os.Environ(), "CLOUDFLARE_ACCOUNT_ID=", "CLOUDFLARE_API_TOKEN=")
	out, err := command.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("the command exited with %v, want status 1", err)
	}
	for _, want := range append(additional,
		"listenersets.gateway.networking.k8s.io is missing", "gateways.gateway.networking.k8s.io has version v1.4.0",
		"v1.5 or v1.6", "tunnelconfigurations.tunnelgateway.dev has version v0.0.1", "tunnels.tunnelgateway.dev is missing",
	) {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output does not contain %q", want)
		}
	}
	if lines := strings.Count(string(out), "\n"); lines > 4 || strings.Contains(string(out), "goroutine") {
		t.Errorf("the output has more than four lines or a stack trace:\n%s", out)
	}
}

// checkMissingKindError checks that plan names the missing CRD for a user without
// permission to read CRDs.
func checkMissingKindError(ctx context.Context, t *testing.T, admin *rest.Config, config string) {
	t.Helper()
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}}
	if err := kube.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	user, err := createViewer(ctx, kube, "customresourcedefinitions")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := impersonate(config, user, path); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, binary, "plan", "--kubeconfig="+path).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("plan exited with %v, want status 1", err)
	}
	if want := "the CRD listenersets.gateway.networking.k8s.io is missing"; !strings.Contains(string(out), want) {
		t.Errorf("the output of plan does not contain %q:\n%s", want, out)
	}
}

// unsupportedCRDs removes the ListenerSet and Tunnel CRDs, gives the Gateway and
// TunnelConfiguration CRDs an older version, and removes the version from the HTTPRoute
// CRD.
func unsupportedCRDs(supported []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	var remaining []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range supported {
		switch crd.Spec.Names.Plural {
		case "listenersets", "tunnels":
			continue
		case "tunnelconfigurations":
			crd.Annotations[v1alpha1.BundleVersionAnnotation] = "v0.0.1"
		case "httproutes":
			delete(crd.Annotations, consts.BundleVersionAnnotation)
		case "gateways":
			crd.Annotations[consts.BundleVersionAnnotation] = "v1.4.0"
		}
		remaining = append(remaining, crd)
	}
	return remaining
}
