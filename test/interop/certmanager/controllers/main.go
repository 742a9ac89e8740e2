// Command controllers runs the controllers from a cert-manager release against a cluster.
// Like cert-manager's controller binary, it reads a configuration file that selects the
// controllers.
//
// It omits the rest of that binary: leader election, metrics, health checks, and the
// issuers that require Internet access.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	configv1alpha1 "github.com/cert-manager/cert-manager/pkg/apis/config/controller/v1alpha1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	gateways "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/gateways"
	ingresses "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	listenersets "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/listenerset"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // registers the CA issuer
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // registers the self-signed issuer
	utilfeature "github.com/cert-manager/cert-manager/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// The defaults in cert-manager's controller binary.
const (
	workers        = 5
	minimumBackoff = time.Hour
	maximumBackoff = 32 * time.Hour
)

// cert-manager's feature gates. It does not export their names.
const (
	gatewayAPIGate  featuregate.Feature = "ExperimentalGatewayAPISupport"
	listenerSetGate featuregate.Feature = "ListenerSets"
)

// defaultControllers are the controllers that always run.
var defaultControllers = []string{
	ingresses.ControllerName,
	issuers.ControllerName, clusterissuers.ControllerName,
	approver.ControllerName, ca.CRControllerName, selfsigned.CRControllerName,
	trigger.ControllerName, keymanager.ControllerName, requestmanager.ControllerName,
	issuing.ControllerName, readiness.ControllerName, revisionmanager.ControllerName,
}

func main() {
	path := flag.String("config", "", "`file` with a ControllerConfiguration of cert-manager")
	namespace := flag.String("cluster-resource-namespace", "cert-manager", "`namespace` of the Secrets that ClusterIssuers reference")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *path, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "controllers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path, namespace string) error {
	config, err := readConfig(path)
	if err != nil {
		return err
	}
	factory, err := controller.NewContextFactory(ctx, options(config, namespace))
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	names := enabled(config)
	fmt.Fprintln(os.Stderr, "cert-manager's controllers:", names)
	var running []controller.Interface
	for _, name := range names {
		c, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		running = append(running, c)
	}
	// The informers must start after every controller has registered its watches.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	shared.GWShared.Start(ctx.Done())
	return runAll(ctx, running)
}

// runAll runs the controllers until ctx is cancelled or one of them fails.
func runAll(ctx context.Context, controllers []controller.Interface) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, c := range controllers {
		running.Go(func() {
			if err := c.Run(workers, ctx); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// readConfig reads the configuration and sets its feature gates.
func readConfig(path string) (*configv1alpha1.ControllerConfiguration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config configv1alpha1.ControllerConfiguration
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(config.FeatureGates); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &config, nil
}

// enabled returns the names of the controllers to run. As in cert-manager's binary, each
// Gateway API controller depends on a feature gate and a setting.
func enabled(config *configv1alpha1.ControllerConfiguration) []string {
	names := slices.Clone(defaultControllers)
	gates, api := utilfeature.DefaultFeatureGate, config.GatewayAPIConfig
	if gates.Enabled(gatewayAPIGate) && ptr.Deref(api.Enabled, false) {
		names = append(names, gateways.ControllerName)
		if gates.Enabled(listenerSetGate) && ptr.Deref(api.EnableListenerSet, false) {
			names = append(names, listenersets.ControllerName)
		}
	}
	slices.Sort(names)
	return names
}

func options(config *configv1alpha1.ControllerConfiguration, namespace string) controller.ContextOptions {
	return controller.ContextOptions{
		Kubeconfig:         os.Getenv("KUBECONFIG"),
		KubernetesAPIQPS:   1000, // ignored if the API server uses priority and fairness
		KubernetesAPIBurst: 1000,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		IngressShimOptions: controller.IngressShimOptions{
			DefaultIssuerKind:                 "Issuer",
			DefaultIssuerGroup:                "cert-manager.io",
			DefaultAutoCertificateAnnotations: []string{"kubernetes.io/tls-acme"},
		},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: minimumBackoff,
			CertificateRequestMaximumBackoffDuration: maximumBackoff,
		},
		ConfigOptions: controller.ConfigOptions{
			EnableGatewayAPI:            ptr.Deref(config.GatewayAPIConfig.Enabled, false),
			EnableGatewayAPIListenerSet: ptr.Deref(config.GatewayAPIConfig.EnableListenerSet, false),
		},
	}
}
