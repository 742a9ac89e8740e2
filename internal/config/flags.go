package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Group is a set of flags under one heading in the help text.
type Group struct {
	Title string
	Flags *pflag.FlagSet
}

// Flags returns the flags that set c, with their defaults.
func (c *Config) Flags() []Group {
	return []Group{
		c.Cloudflare.Flags("Edit"),
		{"Gateways", c.Gateway.flags()},
		{"Kubernetes", c.Kubernetes.flags()},
		{"Envoy", c.XDS.flags()},
		{"Endpoints and log", c.Serving.flags()},
	}
}

// Flags returns the flags that set c. permission is what the API token needs in the
// category "Cloudflare Tunnel": Edit, or Read for a command that changes nothing.
func (c *Cloudflare) Flags(permission string) Group {
	f := pflag.NewFlagSet("cloudflare", pflag.ContinueOnError)
	f.StringVar(&c.AccountID, "cloudflare-account-id", "", "default account `ID`, for Gateways whose GatewayClass sets no account in its TunnelConfiguration")
	f.Var((*secretValue)(&c.APIToken), "cloudflare-api-token",
		"API `token` for the default account, with the permission Cloudflare Tunnel: "+permission+"; prefer the environment variable, because other users on the machine can see flags")
	f.StringVar(&c.APITokenSecret, "cloudflare-api-token-secret", "",
		"`namespace/name` for the Secret that contains the API token under the key token, in the controller's namespace; alternative to --cloudflare-api-token; a changed token takes effect without a restart")
	f.StringVar(&c.BaseURL, "cloudflare-base-url", "", baseURLUsage)
	return Group{"Cloudflare", f}
}

// OwnTokenFlags returns the flags of a command that reads DNS records or applications with the
// user's API token. needs says which permissions it needs. The command does not use the
// controller's token.
func (c *Cloudflare) OwnTokenFlags(needs string) Group {
	f := pflag.NewFlagSet("cloudflare", pflag.ContinueOnError)
	f.Var((*secretValue)(&c.APIToken), "cloudflare-api-token",
		"your API `token`, with the "+needs+"; prefer the environment variable, because other users on the machine can see flags")
	f.StringVar(&c.BaseURL, "cloudflare-base-url", "", baseURLUsage)
	return Group{"Cloudflare", f}
}

// ReadFlags returns the flags of a command that reads a tunnel with the user's API token.
func (c *Cloudflare) ReadFlags() Group {
	f := pflag.NewFlagSet("cloudflare", pflag.ContinueOnError)
	f.StringVar(&c.AccountID, "cloudflare-account-id", "", "`ID` of the account that the tunnel belongs to")
	f.Var((*secretValue)(&c.APIToken), "cloudflare-api-token",
		"your API `token`, with the permission Cloudflare Tunnel: Read; prefer the environment variable, because other users on the machine can see flags")
	f.StringVar(&c.BaseURL, "cloudflare-base-url", "", baseURLUsage)
	return Group{"Cloudflare", f}
}

// baseURLUsage describes --cloudflare-base-url.
const baseURLUsage = "Cloudflare API `URL` including the version, for a proxy or a simulator (default the public API)"

func (g *Gateway) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	f.StringVar(&g.ControllerName, "controller-name", DefaultControllerName, "spec.controllerName in the GatewayClasses that this controller manages, as `domain/path`")
	f.StringVar(&g.ClusterID, "cluster-id", "", "installation `ID`, with which all tunnel names begin; set a unique ID so that a rebuilt cluster finds its tunnels (default a hash over the kube-system namespace UID and the controller name)")
	f.StringVar(&g.ClusterDomain, "cluster-domain", DefaultClusterDomain, "DNS `domain` that the cluster uses")
	f.DurationVar(&g.RetirementDelay, "retirement-delay", 30*time.Second, "how long a Gateway must be gone before the controller deletes its tunnel; a Gateway that returns within this time keeps its address")
	f.DurationVar(&g.DriftInterval, "drift-interval", 10*time.Minute, "interval at which the controller reads each tunnel's configuration to detect external changes; at least 10s")
	f.DurationVar(&g.InventoryInterval, "inventory-interval", time.Hour, "interval at which the controller lists the tunnels in each account to detect deleted tunnels, replaced tokens and tunnels without a Tunnel object; at least 10s")
	f.StringVar(&g.SigningKeySecret, "signing-key-secret", DefaultSigningKeySecret, "`name` of the Secret in the controller's namespace with the key, under key, that signs the comments of managed DNS records; if dns.mode is Manage, the controller creates a missing Secret; keep a backup, because without the key the controller no longer changes its records")
	f.IntVar(&g.Workers, "workers", 4, "maximum number of concurrent Gateway reconciles")
	return f
}

// Defaults for flags that several commands have.
const (
	DefaultControllerName = "tunnelgateway.dev/controller"
	DefaultClusterDomain  = "cluster.local"
	// DefaultSigningKeySecret names the Secret with the key that signs DNS records.
	DefaultSigningKeySecret = "tunnel-gateway-dns-key"
	// DefaultControllerNamespace is where the command plan expects the controller by
	// default. The installation guide uses the same namespace.
	DefaultControllerNamespace = "tunnel-gateway"
	// DefaultClassName names the GatewayClass that plan assumes if it reads no cluster and
	// the manifests contain none. The documentation uses the same name.
	DefaultClassName = "cloudflare-tunnel"
)

func (k *Kubernetes) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("kubernetes", pflag.ContinueOnError)
	f.StringVar(&k.Kubeconfig, "kubeconfig", "", "path to a kubeconfig `file` (default ~/.kube/config, otherwise the cluster that the controller runs in)")
	f.Float32Var(&k.QPS, "kube-api-qps", 0, "maximum average requests per second to the API server; 0 means no limit, because the API server limits its clients itself with API Priority and Fairness")
	f.IntVar(&k.Burst, "kube-api-burst", 200, "maximum requests to the API server in a burst, if --kube-api-qps limits them")
	f.StringVar(&k.ControllerNamespace, "controller-namespace", "", "`namespace` in which the controller creates Tunnels, connectors and their Secrets, and the only namespace in which a TunnelConfiguration may set an account and API token; set it if you run the controller outside a cluster (default the controller pod's namespace; required outside a cluster)")
	f.StringSliceVar(&k.Namespaces, "namespaces", nil, "namespaces whose objects the controller serves, as comma-separated `names`; it ignores all other namespaces (default all)")
	f.BoolVar(&k.ValidateCertificates, "validate-certificates", true, "read and validate the certificates that listeners refer to, which requires the permission to read Secrets; otherwise the listeners' conditions name the certificates that are not validated")
	f.StringSliceVar(&k.CertificateNamespaces, "certificate-namespaces", nil, "namespaces in which the controller reads and validates certificates, as comma-separated `names` (default all that the controller serves)")
	f.BoolVar(&k.LeaderElection, "leader-election", true, "elect a leader, so that only one replica is active")
	f.StringVar(&k.LeaderElectionID, "leader-election-id", "tunnel-gateway.tunnelgateway.dev", "Lease `name` for leader election")
	f.StringVar(&k.LeaderElectionNamespace, "leader-election-namespace", "", "`namespace` that contains the leader election Lease (default the --controller-namespace)")
	return f
}

func (x *XDS) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("xds", pflag.ContinueOnError)
	f.StringVar(&x.Service, "xds-service", "tunnel-gateway-xds", "`name` of the headless Service in the controller's namespace through which Envoys connect to controller port 18000; the Secret with their certificate authority has this name and the suffix -ca")
	f.StringVar(&x.BindAddress, "xds-bind-address", ":18000", "`address` on which the leader serves the Envoy configuration, as host:port")
	f.TextVar(&x.PodIP, "pod-ip", netip.Addr{}, "controller pod's IP `address`; if it is an IPv6 address, Envoys accept probes and scrapes on IPv6 addresses too (default none; the chart sets it)")
	return f
}

func (s *Serving) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("serving", pflag.ContinueOnError)
	f.StringVar(&s.MetricsAddress, "metrics-address", ":8080", "`address` for /metrics, as host:port; 0 disables it")
	f.StringVar(&s.HealthAddress, "health-address", ":8081", "`address` for /healthz and /readyz, as host:port; 0 disables it")
	f.BoolVar(&s.Pprof, "pprof", false, "serve profiles under /debug/pprof/ on the metrics address, without authentication")
	f.StringVar(&s.TracingEndpoint, "tracing-endpoint", "", "OpenTelemetry collector `URL` that receives a trace for each reconcile, by OTLP over gRPC: http://host:4317, or https://host:4317 for TLS (default none)")
	f.StringVar(&s.LogLevel, "log-level", "info", "minimum log `level`: "+strings.Join(LogLevels, ", "))
	f.StringVar(&s.LogFormat, "log-format", "json", "log `format`: "+strings.Join(LogFormats, ", "))
	return f
}

// EnvName returns the environment variable for a flag, for example
// TUNNEL_GATEWAY_CLUSTER_ID for "cluster-id". The variables for Cloudflare have the same
// names as in Cloudflare's tools.
func EnvName(flag string) string {
	name := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	if strings.HasPrefix(name, "CLOUDFLARE_") || name == "KUBECONFIG" {
		return name
	}
	return "TUNNEL_GATEWAY_" + name
}

// FromEnvironment sets the flags that are not set on the command line from the
// environment. It ignores empty variables. The errors contain the names of the
// variables, but not their values.
func FromEnvironment(groups []Group, lookup func(string) (string, bool)) error {
	var errs []error
	for _, group := range groups {
		group.Flags.VisitAll(func(f *pflag.Flag) {
			value, ok := lookup(EnvName(f.Name))
			if f.Changed || !ok || value == "" {
				return
			}
			if err := f.Value.Set(value); err != nil {
				errs = append(errs, fmt.Errorf("%s must be a valid %s for --%s", EnvName(f.Name), f.Value.Type(), f.Name))
			}
		})
	}
	return errors.Join(errs...)
}

// Usage returns the usage text of a command with grouped flags and their
// environment variables. use is the usage line.
func Usage(use string, groups []Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", use)
	for _, group := range groups {
		flags := pflag.NewFlagSet(group.Title, pflag.ContinueOnError)
		group.Flags.VisitAll(func(f *pflag.Flag) {
			flag := *f
			flag.Usage += " [" + EnvName(f.Name) + "]"
			flags.AddFlag(&flag)
		})
		fmt.Fprintf(&b, "\n%s:\n%s", group.Title, flags.FlagUsages())
	}
	return b.String()
}
