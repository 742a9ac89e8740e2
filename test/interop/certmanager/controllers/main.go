// Command controllers runs cert-manager's own controllers against the cluster
// of a kubeconfig, as cert-manager's controller binary does: the same
// controllers of the same release, switched on by the same configuration file.
//
// Only what starts them is here. What the binary has besides is left out:
// leader election, metrics, health, and the issuers that need the Internet.
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
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // what a CA issuer needs to be ready
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // and a self-signed one
	utilfeature "github.com/cert-manager/cert-manager/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// The defaults of cert-manager's controller binary.
const (
	workers        = 5
	minimumBackoff = time.Hour
	maximumBackoff = 32 * time.Hour
)

// Feature gates of cert-manager, whose own names are internal to it.
const (
	gatewayAPIGate  featuregate.Feature = "ExperimentalGatewayAPISupport"
	listenerSetGate featuregate.Feature = "ListenerSets"
)

// always are the controllers that need no switch.
var always = []string{
	ingresses.ControllerName,
	issuers.ControllerName, clusterissuers.ControllerName,
	approver.ControllerName, ca.CRControllerName, selfsigned.CRControllerName,
	trigger.ControllerName, keymanager.ControllerName, requestmanager.ControllerName,
	issuing.ControllerName, readiness.ControllerName, revisionmanager.ControllerName,
}

func main() {
	path := flag.String("config", "", "`file` with a ControllerConfiguration of cert-manager")
	namespace := flag.String("cluster-resource-namespace", "cert-manager", "`namespace` of what ClusterIssuers refer to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *path, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "controllers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path, namespace string) error {
	config, err := read(path)
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
		one, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		running = append(running, one)
	}
	// Informers start once every controller has said what it watches.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	shared.GWShared.Start(ctx.Done())
	return runAll(ctx, running)
}

// runAll runs the controllers until ctx ends or one of them fails.
func runAll(ctx context.Context, all []controller.Interface) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, one := range all {
		running.Go(func() {
			if err := one.Run(workers, ctx); err != nil {
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

// read reads the configuration and sets the feature gates that it names.
func read(path string) (*configv1alpha1.ControllerConfiguration, error) {
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

// enabled returns the controllers to run. Those for the Gateway API depend on a
// feature gate and on a setting each, as they do in cert-manager's binary.
func enabled(config *configv1alpha1.ControllerConfiguration) []string {
	names := slices.Clone(always)
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
		KubernetesAPIQPS:   1000, // where the API server does not share itself out
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
