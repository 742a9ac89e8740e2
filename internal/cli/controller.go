package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/pprof" // #nosec G108 -- what it registers by itself is not served
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tracing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

func controllerCommand() *cobra.Command {
	var c config.Config
	groups := c.Flags()
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller",
		Long: `Runs the controller for every GatewayClass of its controller name.

Each flag can be given in the environment instead, under the name that stands
in brackets; a flag goes before its variable.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.FromEnvironment(groups, os.LookupEnv); err != nil {
				return err
			}
			if err := c.Validate(); err != nil {
				return err
			}
			namespace, err := podNamespace(podNamespaceFile)
			if err != nil {
				return err
			}
			if err := c.Complete(namespace); err != nil {
				return err
			}
			return runController(cmd.Context(), &c)
		},
	}
	for _, group := range groups {
		cmd.Flags().AddFlagSet(group.Flags)
	}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStderr(), config.Usage(cmd.UseLine(), groups))
		return err
	})
	registerCompletion(cmd, "log-level", cobra.FixedCompletions(config.LogLevels, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "log-format", cobra.FixedCompletions(config.LogFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// podNamespaceFile is where a pod finds its namespace.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// podNamespace returns the namespace of the controller's pod, or "" outside a
// cluster.
func podNamespace(file string) (string, error) {
	namespace, err := os.ReadFile(file) // #nosec G304 -- a fixed path, but in tests
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the pod: %w", err)
	}
	return strings.TrimSpace(string(namespace)), nil
}

// runController runs until the context ends.
func runController(ctx context.Context, c *config.Config) error {
	logger, err := newLogger(c.Serving)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	kube, err := restConfig(clientConfig(c.Kubernetes.Kubeconfig, ""), c.Kubernetes.QPS, c.Kubernetes.Burst)
	if err != nil {
		return err
	}
	live, err := client.New(kube, client.Options{Scheme: controller.Scheme()})
	if err != nil {
		return fmt.Errorf("preparing the controller: %w", err)
	}
	if err := controller.CheckCRDs(ctx, live); err != nil {
		return err
	}
	// Before there is a manager, whose cache needs to know.
	namespaces, err := controller.FindNamespaces(ctx, live, logger, c.Kubernetes.Namespaces)
	if err != nil {
		return err
	}
	secrets, err := controller.FindSecretNamespaces(ctx, live, logger, secretNamespaces(c.Kubernetes, namespaces.Served))
	if err != nil {
		return err
	}
	scope := controller.Scope{
		Own: c.Kubernetes.ControllerNamespace, Namespaces: namespaces.Served,
		AllSecrets: readsAllSecrets(c.Kubernetes), SecretNamespaces: secrets.Served,
	}
	readiness := &controller.Readiness{}
	m, err := newManager(kube, c, scope, readiness, logger)
	if err != nil {
		return fmt.Errorf("preparing the controller: %w", err)
	}
	clusterUID, err := clusterUID(ctx, live)
	if err != nil {
		return err
	}
	tracer, flush, err := tracing.Start(ctx, logger, c.Serving.TracingEndpoint, version)
	if err != nil {
		return err
	}
	defer flushTraces(logger, flush)
	o := controllerOptions(c, clusterUID, metrics.New(ctrlmetrics.Registry), tracer)
	o.Watches, o.ReadsCertificates = namespaces.Has, scope.ReadsCertificates
	if err := errors.Join(controller.Setup(ctx, m, o), readiness.Setup(ctx, m)); err != nil {
		return fmt.Errorf("preparing the controller: %w", err)
	}
	if !c.Cloudflare.HasDefaultAccount() {
		logger.Info("there is no account by default: only Gateways are served whose GatewayClass refers to a TunnelConfiguration with spec.account")
	}
	logger.Info("starting", "version", version, "controllerName", c.Gateway.ControllerName, "clusterID", o.ClusterID)
	return runUntilNamespacesChange(ctx, m, readiness, logger, namespaces, secrets)
}

// readsAllSecrets reports whether certificates are checked in all namespaces.
func readsAllSecrets(k config.Kubernetes) bool {
	return k.ValidateCertificates && len(k.CertificateNamespaces) == 0 && len(k.Namespaces) == 0
}

// secretNamespaces returns in which of the namespaces certificates are checked,
// unless they are checked in all. served are those of --namespaces that exist.
func secretNamespaces(k config.Kubernetes, served []string) []string {
	switch {
	case !k.ValidateCertificates:
		return nil
	case len(k.CertificateNamespaces) == 0:
		return served
	case len(k.Namespaces) == 0:
		return k.CertificateNamespaces
	}
	return slices.DeleteFunc(slices.Clone(k.CertificateNamespaces), func(namespace string) bool { return !slices.Contains(served, namespace) })
}

// runUntilNamespacesChange runs the manager until the context ends or the namespaces are
// not those that it was made for. That is no error: the process exits, and its pod
// starts it again.
func runUntilNamespacesChange(ctx context.Context, m manager.Manager, r *controller.Readiness, logger logr.Logger, watched ...*controller.Namespaces) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// Not one of the manager's runnables: these wait for the cache, which a
	// namespace may keep waiting for ever.
	for _, namespaces := range watched {
		go func() {
			if err := namespaces.Watch(ctx, m.GetCache(), r.Synced); err != nil {
				stop(err)
			}
		}()
	}
	err := m.Start(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, controller.ErrNamespacesChanged) {
		logger.Info("ending, to be started again", "cause", cause.Error())
	}
	return err
}

// controllerOptions are the reconcilers' part of the configuration.
func controllerOptions(c *config.Config, clusterUID string, recorded *metrics.Metrics, tracer trace.Tracer) controller.Options {
	return controller.Options{
		ControllerName: gatewayv1.GatewayController(c.Gateway.ControllerName),
		ClusterDomain:  c.Gateway.ClusterDomain,
		ClusterUID:     clusterUID,
		ClusterID:      cmp.Or(c.Gateway.ClusterID, tunnel.DefaultClusterID(clusterUID, c.Gateway.ControllerName)),
		Namespace:      c.Kubernetes.ControllerNamespace,
		Account:        defaultCredentials(c.Cloudflare),
		Open: func(id, token string) (provider.Provider, error) {
			p, err := cloudflare.New(cloudflare.Options{AccountID: id, APIToken: token, BaseURL: c.Cloudflare.BaseURL})
			if err != nil {
				return nil, err
			}
			return recorded.Meter(p, id), nil
		},
		Workers:           c.Gateway.Workers,
		RetirementDelay:   c.Gateway.RetirementDelay,
		DriftInterval:     c.Gateway.DriftInterval,
		InventoryInterval: c.Gateway.InventoryInterval,
		Metrics:           recorded,
		Tracer:            tracer,
	}
}

// flushTraces sends the last traces. A collector that does not take them stops
// nobody.
func flushTraces(logger logr.Logger, flush func() error) {
	if err := flush(); err != nil {
		logger.Info("the last traces were not sent", "cause", err.Error())
	}
}

// defaultCredentials say where tunnels are by default. A validated
// configuration has one source of the API token.
func defaultCredentials(c config.Cloudflare) credentials.Default {
	namespace, name, _ := strings.Cut(c.APITokenSecret, "/")
	return credentials.Default{
		Account: c.AccountID, Token: string(c.APIToken), Secret: types.NamespacedName{Namespace: namespace, Name: name},
	}
}

// gracePeriod is how long the passes that run are waited for at the end: less
// than the 30 s that Kubernetes gives a pod by default, so that the Lease is
// given back and the last traces are sent.
const gracePeriod = 20 * time.Second

func newManager(kube *rest.Config, c *config.Config, scope controller.Scope, readiness *controller.Readiness, logger logr.Logger) (manager.Manager, error) {
	m, err := ctrl.NewManager(kube, manager.Options{
		Scheme:                        controller.Scheme(),
		Logger:                        logger,
		LeaderElection:                c.Kubernetes.LeaderElection,
		LeaderElectionID:              c.Kubernetes.LeaderElectionID,
		LeaderElectionNamespace:       c.Kubernetes.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsOptions(c.Serving),
		HealthProbeBindAddress:        c.Serving.HealthAddress,
		GracefulShutdownTimeout:       ptr.To(gracePeriod),
		// Secrets are read one by one and not cached.
		Client:   client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		NewCache: controller.NewCache(scope, readiness),
	})
	if err != nil {
		return nil, err
	}
	// That the process answers is all: what it waits for, a restart does not bring.
	return m, m.AddHealthzCheck("ping", healthz.Ping)
}

// metricsOptions say what is served on the metrics address.
func metricsOptions(s config.Serving) metricsserver.Options {
	o := metricsserver.Options{BindAddress: s.MetricsAddress}
	if s.Pprof {
		// Not pprof.Cmdline: the API token may be among the flags.
		o.ExtraHandlers = map[string]http.Handler{
			"/debug/pprof/":        http.HandlerFunc(pprof.Index),
			"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
			"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
			"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		}
	}
	return o
}

// clusterUID returns the UID of the namespace kube-system, which identifies the
// cluster.
func clusterUID(ctx context.Context, live client.Reader) (string, error) {
	var namespace corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("reading the UID of namespace kube-system, which identifies the cluster: %w", err)
	}
	return string(namespace.UID), nil
}

func newLogger(s config.Serving) (logr.Logger, error) {
	c := zap.NewProductionConfig()
	if s.LogFormat == "console" {
		c.Encoding = "console"
	}
	level, err := zapcore.ParseLevel(s.LogLevel)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %w", err)
	}
	c.Level = zap.NewAtomicLevelAt(level)
	c.EncoderConfig.EncodeTime = zapcore.RFC3339TimeEncoder
	c.DisableStacktrace = true
	c.Sampling = nil
	logger, err := c.Build()
	if err != nil {
		return logr.Logger{}, fmt.Errorf("opening the log: %w", err)
	}
	return zapr.NewLogger(logger), nil
}
