package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/pprof" // #nosec G108 -- the handlers that it registers are not served
	"os"
	"runtime/debug"
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
	"github.com/tunnel-gateway/tunnel-gateway/internal/leader"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tracing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// controllerCommand returns the command controller.
func controllerCommand() *cobra.Command {
	var c config.Config
	groups := c.Flags()
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller",
		Long: `Runs the controller, which serves the Gateways of every GatewayClass with its
controller name.

The environment variable in brackets also sets the flag. A flag takes precedence over
its variable.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.FromEnvironment(groups, os.LookupEnv); err != nil {
				return err
			}
			if cmd.Flags().Changed("kube-api-burst") && c.Kubernetes.QPS == 0 {
				return errors.New("--kube-api-burst requires --kube-api-qps: without it, the number of requests has no limit")
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

// podNamespaceFile contains the pod's namespace.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// gcPercent is the controller's GOGC unless the environment sets it. Most of its heap lives as long
// as the objects, and most changes allocate less than a tenth of what triggers a collection.
const gcPercent = 25

// podNamespace reads the controller pod's namespace from file. It returns "" outside a
// cluster.
func podNamespace(file string) (string, error) {
	namespace, err := os.ReadFile(file) // #nosec G304 -- a fixed path, except in tests
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the pod's namespace: %w", err)
	}
	return strings.TrimSpace(string(namespace)), nil
}

// runController runs the controller until the context ends.
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
		return fmt.Errorf("set up the controller: %w", err)
	}
	crds, err := controller.CheckCRDs(ctx, live)
	if err != nil {
		return err
	}
	policies := controller.NewAccessPolicies(crds, logger)
	// The manager's cache requires the namespaces.
	namespaces, err := controller.FindNamespaces(ctx, live, logger, c.Kubernetes.Namespaces, policies.Kinds())
	if err != nil {
		return err
	}
	secrets, err := controller.FindSecretNamespaces(ctx, live, logger, secretNamespaces(c.Kubernetes, namespaces.Served))
	if err != nil {
		return err
	}
	scope := controller.Scope{
		ControllerNamespace: c.Kubernetes.ControllerNamespace, Namespaces: namespaces.Served,
		AllSecrets: readsAllSecrets(c.Kubernetes), SecretNamespaces: secrets.Served,
	}
	limitGarbage()
	readiness := &controller.Readiness{}
	m, lock, err := newManager(kube, c, scope, readiness, logger)
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
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
	ctx, stop := context.WithCancelCause(ctx) // Setup's goroutines must end before a restart
	defer stop(nil)
	o := controllerOptions(c, clusterUID, metrics.New(ctrlmetrics.Registry), tracer)
	o.InScope, o.ReadsCertificates, o.AccessPolicies = namespaces.Includes, scope.ReadsCertificates, policies
	if err := errors.Join(controller.Setup(ctx, m, o), readiness.Setup(ctx, m, policies.Kinds())); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if !c.Cloudflare.HasDefaultAccount() {
		logger.Info("no default account configured; serving only Gateways whose GatewayClass sets spec.account in its TunnelConfiguration")
	}
	logger.Info("starting", "version", version, "controllerName", c.Gateway.ControllerName, "clusterID", o.ClusterID)
	return runUntilChange(ctx, stop, m, readiness, logger, append(lock, namespaces, secrets, policies)...)
}

// limitGarbage sets how much garbage the process collects at once.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// readsAllSecrets reports whether certificates are validated in all namespaces.
func readsAllSecrets(k config.Kubernetes) bool {
	return k.ValidateCertificates && len(k.CertificateNamespaces) == 0 && len(k.Namespaces) == 0
}

// secretNamespaces returns the namespaces in which certificates are validated, if these
// are not all namespaces. served are the --namespaces that exist.
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

// changing is what cannot change while the controller runs. Watch returns the error that
// requires a restart.
type changing interface {
	Watch(ctx context.Context, cached client.Reader, synced func() bool) error
}

// runUntilChange runs the manager until the context ends, a watched namespace is created or
// deleted, the CRD of AccessPolicies is installed, or the API server's data is restored. A
// change is not an error: runUntilChange cancels the context with stop and returns, the process
// exits, and its pod restarts it.
func runUntilChange(ctx context.Context, stop context.CancelCauseFunc, m manager.Manager, r *controller.Readiness, logger logr.Logger, watched ...changing) error {
	// The watches are not manager runnables, because runnables start only after the cache
	// has synced. It never syncs if the controller cannot read a namespace.
	for _, one := range watched {
		go func() {
			if err := one.Watch(ctx, m.GetCache(), r.Synced); err != nil {
				stop(err)
			}
		}()
	}
	err := m.Start(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		logger.Info("exiting for a restart", "cause", cause.Error())
	}
	return err
}

// controllerOptions returns the options for the reconcilers.
func controllerOptions(c *config.Config, clusterUID string, recorded *metrics.Metrics, tracer trace.Tracer) controller.Options {
	var accounts cloudflare.Client
	return controller.Options{
		ControllerName: gatewayv1.GatewayController(c.Gateway.ControllerName),
		ClusterDomain:  c.Gateway.ClusterDomain,
		ClusterUID:     clusterUID,
		ClusterID:      cmp.Or(c.Gateway.ClusterID, tunnel.DefaultClusterID(clusterUID, c.Gateway.ControllerName)),
		Namespace:      c.Kubernetes.ControllerNamespace,
		Account:        defaultCredentials(c.Cloudflare),
		Open: func(id, token string) (provider.Provider, error) {
			p, err := accounts.Open(cloudflare.Options{AccountID: id, APIToken: token, BaseURL: c.Cloudflare.BaseURL})
			if err != nil {
				return nil, err
			}
			return recorded.Meter(p, id), nil
		},
		OpenDNS: func(id, token, dnsToken string) (provider.DNS, error) {
			d, err := accounts.OpenDNS(cloudflare.Options{AccountID: id, APIToken: token, BaseURL: c.Cloudflare.BaseURL}, dnsToken)
			if err != nil {
				return nil, err
			}
			return recorded.MeterDNS(d, id), nil
		},
		OpenAccess: func(id, token, accessToken string) (provider.Access, error) {
			a, err := accounts.OpenAccess(cloudflare.Options{AccountID: id, APIToken: token, BaseURL: c.Cloudflare.BaseURL}, accessToken)
			if err != nil {
				return nil, err
			}
			return recorded.MeterAccess(a, id), nil
		},
		SigningKeySecret:  c.Gateway.SigningKeySecret,
		Workers:           c.Gateway.Workers,
		RetirementDelay:   c.Gateway.RetirementDelay,
		DriftInterval:     c.Gateway.DriftInterval,
		InventoryInterval: c.Gateway.InventoryInterval,
		XDSAddress:        c.XDS.BindAddress,
		XDSService:        c.XDS.Service,
		PodIP:             c.XDS.PodIP,
		PodIPs:            podAddresses(c.XDS.PodIP),
		Metrics:           recorded,
		Tracer:            tracer,
	}
}

// flushTraces sends the remaining traces. A failure does not affect the exit status.
func flushTraces(logger logr.Logger, flush func() error) {
	if err := flush(); err != nil {
		logger.Info("failed to send the last traces", "cause", err.Error())
	}
}

// defaultCredentials returns the credentials for the default account. A validated
// configuration has at most one API token source.
func defaultCredentials(c config.Cloudflare) credentials.Default {
	namespace, name, _ := strings.Cut(c.APITokenSecret, "/")
	return credentials.Default{
		Account: c.AccountID, Token: string(c.APIToken), Secret: types.NamespacedName{Namespace: namespace, Name: name},
	}
}

// gracePeriod is how long the manager waits for running reconciles before it exits. It is
// shorter than a pod's default termination grace period, 30 seconds, so that enough time
// remains to release the Lease and to send traces.
const gracePeriod = 20 * time.Second

// newManager returns the manager that runs the reconcilers and, with leader election, its lock.
func newManager(kube *rest.Config, c *config.Config, scope controller.Scope, readiness *controller.Readiness, logger logr.Logger) (manager.Manager, []changing, error) {
	options := manager.Options{
		Scheme:                  controller.Scheme(),
		Logger:                  logger,
		Metrics:                 metricsOptions(c.Serving),
		HealthProbeBindAddress:  c.Serving.HealthAddress,
		GracefulShutdownTimeout: ptr.To(gracePeriod),
		// Secrets are read individually and not cached.
		Client:   client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		NewCache: controller.NewCache(scope, readiness),
	}
	m, lock, err := withLeader(kube, c.Kubernetes, options)
	if err != nil {
		return nil, nil, err
	}
	// The probe checks only that the process responds. A restart would not fix a
	// missing dependency.
	return m, lock, m.AddHealthzCheck("ping", healthz.Ping)
}

// withLeader returns the manager and, with leader election, its lock.
func withLeader(kube *rest.Config, k config.Kubernetes, o manager.Options) (manager.Manager, []changing, error) {
	if !k.LeaderElection {
		m, err := ctrl.NewManager(kube, o)
		return m, nil, err
	}
	lock, err := leader.NewLock(kube, types.NamespacedName{Namespace: k.LeaderElectionNamespace, Name: k.LeaderElectionID})
	if err != nil {
		return nil, nil, err
	}
	o.LeaderElection, o.LeaderElectionID, o.LeaderElectionReleaseOnCancel = true, k.LeaderElectionID, true
	o.LeaderElectionResourceLockInterface = lock
	m, err := ctrl.NewManager(kube, o)
	if err != nil {
		return nil, nil, err
	}
	lock.Record(m.GetEventRecorderFor(lock.Identity())) //nolint:staticcheck // the lock requires the older API for events
	return m, []changing{lock}, nil
}

// metricsOptions returns the options for the metrics server.
func metricsOptions(s config.Serving) metricsserver.Options {
	o := metricsserver.Options{BindAddress: s.MetricsAddress}
	if s.Pprof {
		// pprof.Cmdline is missing, because the flags may contain the API token.
		o.ExtraHandlers = map[string]http.Handler{
			"/debug/pprof/":        http.HandlerFunc(pprof.Index),
			"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
			"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
			"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		}
	}
	return o
}

// clusterUID returns the kube-system namespace UID, which identifies the cluster.
func clusterUID(ctx context.Context, live client.Reader) (string, error) {
	var namespace corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("read the UID of namespace kube-system, which identifies the cluster: %w", err)
	}
	return string(namespace.UID), nil
}

// newLogger returns the controller's logger.
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
		return logr.Logger{}, fmt.Errorf("open the log: %w", err)
	}
	return zapr.NewLogger(logger), nil
}
