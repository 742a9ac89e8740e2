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

// A controller without its CRDs ends with one message about all of them, as with
// wrong flags.
func TestCRDsThatWillNotDo(t *testing.T) {
	if kubeconfig != "" {
		return // this is a part of the suite
	}
	control, err := cluster.Start(t.Context(), cluster.Options{CRDs: oldAndFew})
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
	program := build(t, dir)
	saysWhichCRDs(t, exec.CommandContext(ctx, program, "plan", "--kubeconfig="+config))
	saysWhichCRDs(t, exec.CommandContext(ctx, program, "controller", "--controller-namespace=gateways", "--leader-election=false", "--metrics-address=0", "--health-address=0",
		"--kubeconfig="+config), "without a version annotation", `["httproutes.gateway.networking.k8s.io"]`) // in its log
	saysWhichKinds(ctx, t, control.Config, program, config)
}

// saysWhichCRDs checks that the command ends with everything that is wrong with the
// CRDs, and prints more.
func saysWhichCRDs(t *testing.T, command *exec.Cmd, more ...string) {
	t.Helper()
	command.Env = append(os.Environ(), "CLOUDFLARE_ACCOUNT_ID=", "CLOUDFLARE_API_TOKEN=")
	out, err := command.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want status 1", err)
	}
	for _, want := range append(more,
		"listenersets.gateway.networking.k8s.io is missing", "gateways.gateway.networking.k8s.io has version v1.4.0",
		"v1.5 or v1.6", "tunnelconfigurations.tunnelgateway.dev has version v0.0.1", "tunnels.tunnelgateway.dev is missing",
	) {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if lines := strings.Count(string(out), "\n"); lines > 4 || strings.Contains(string(out), "goroutine") {
		t.Errorf("it prints more than four lines:\n%s", out)
	}
}

// saysWhichKinds wants a plan to end with the kinds that are missing, for
// somebody who may not look at CRDs.
func saysWhichKinds(ctx context.Context, t *testing.T, admin *rest.Config, program, config string) {
	t.Helper()
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.ControllerNamespace}}
	if err := kube.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	user, err := makeViewer(ctx, kube, namespace.Name, "customresourcedefinitions")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := impersonate(config, user, path); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, program, "plan", "--kubeconfig="+path).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("plan ended with %v, want status 1", err)
	}
	if want := "the CRD listenersets.gateway.networking.k8s.io is missing"; !strings.Contains(string(out), want) {
		t.Errorf("plan does not say %q:\n%s", want, out)
	}
}

// oldAndFew leaves out ListenerSets and Tunnels, has Gateways and
// TunnelConfigurations of an older version, and HTTPRoutes without a version.
func oldAndFew(usual []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	var kept []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range usual {
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
		kept = append(kept, crd)
	}
	return kept
}
