package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Group is a set of flags that are explained together.
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
		{"Endpoints and log", c.Serving.flags()},
	}
}

// Flags returns the flags that set c. permission is what the API token has to
// have of "Cloudflare Tunnel": Edit, or Read where nothing is written.
func (c *Cloudflare) Flags(permission string) Group {
	f := pflag.NewFlagSet("cloudflare", pflag.ContinueOnError)
	f.StringVar(&c.AccountID, "cloudflare-account-id", "", "`ID` of the account that owns the tunnels, unless the TunnelConfiguration of a class names one")
	f.Var((*secretValue)(&c.APIToken), "cloudflare-api-token",
		"`token` with the permission Cloudflare Tunnel: "+permission+" of the account (this or the next, if there is an account ID); prefer the environment, where other users of the machine do not see it")
	f.StringVar(&c.APITokenSecret, "cloudflare-api-token-secret", "",
		"`namespace/name` of a Secret in the controller's namespace that has the token under the key token; a new token is used at once")
	f.StringVar(&c.BaseURL, "cloudflare-base-url", "", "`URL` of the API with its version, for a proxy or a simulator (default Cloudflare's own)")
	return Group{"Cloudflare", f}
}

func (g *Gateway) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("gateway", pflag.ContinueOnError)
	f.StringVar(&g.ControllerName, "controller-name", DefaultControllerName, "`name` that GatewayClasses of this controller carry in spec.controllerName")
	f.StringVar(&g.ClusterID, "cluster-id", "", "`ID` of this installation, with which the name of every tunnel begins; set one that no other installation has, so that a rebuilt cluster finds its tunnels again (default a hash of the UID of the namespace kube-system and the controller name)")
	f.StringVar(&g.ClusterDomain, "cluster-domain", DefaultClusterDomain, "DNS `domain` of the cluster")
	f.DurationVar(&g.RetirementDelay, "retirement-delay", 30*time.Second, "how long a Gateway has to be gone until its tunnel is deleted; a Gateway that returns within this time keeps its address")
	f.DurationVar(&g.DriftInterval, "drift-interval", 10*time.Minute, "how often the configuration of a tunnel is read, to notice external changes")
	f.DurationVar(&g.InventoryInterval, "inventory-interval", time.Hour, "how often the tunnels of the account are listed, to notice tunnels that were deleted, tokens that were replaced and tunnels without a Tunnel object")
	f.IntVar(&g.Workers, "workers", 4, "how many Gateways are worked on at once")
	return f
}

// Defaults that the command line shares.
const (
	DefaultControllerName = "tunnelgateway.dev/controller"
	DefaultClusterDomain  = "cluster.local"
	// DefaultControllerNamespace is the namespace of the controller for plan,
	// which has no pod. It is that of the installation guide.
	DefaultControllerNamespace = "tunnel-gateway"
	// DefaultClassName is the name that a GatewayClass of ours has by
	// convention.
	DefaultClassName = "cloudflare-tunnel"
)

func (k *Kubernetes) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("kubernetes", pflag.ContinueOnError)
	f.StringVar(&k.Kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server (default ~/.kube/config, or else the cluster that the controller runs in)")
	f.Float32Var(&k.QPS, "kube-api-qps", 100, "requests to the API server per second, on average")
	f.IntVar(&k.Burst, "kube-api-burst", 200, "requests to the API server at once")
	f.StringVar(&k.ControllerNamespace, "controller-namespace", "", "`namespace` of the controller's own objects; accounts and API tokens that GatewayClasses refer to have to be there (default that of the controller's pod; required outside a cluster)")
	f.StringSliceVar(&k.Namespaces, "namespaces", nil, "`names` of the namespaces that are worked in, with commas between them; nothing in others is seen (default all)")
	f.BoolVar(&k.ValidateCertificates, "validate-certificates", true, "read and check the certificates that listeners refer to, which needs permission to read Secrets; the conditions of listeners name certificates that are not checked")
	f.StringSliceVar(&k.CertificateNamespaces, "certificate-namespaces", nil, "`names` of the namespaces in which certificates are read and checked, with commas between them (default all, or those of --namespaces)")
	f.BoolVar(&k.LeaderElection, "leader-election", true, "let one of several replicas work at a time")
	f.StringVar(&k.LeaderElectionID, "leader-election-id", "tunnel-gateway.tunnelgateway.dev", "`name` of the Lease")
	f.StringVar(&k.LeaderElectionNamespace, "leader-election-namespace", "", "`namespace` of the Lease (default that of --controller-namespace)")
	return f
}

func (s *Serving) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("serving", pflag.ContinueOnError)
	f.StringVar(&s.MetricsAddress, "metrics-address", ":8080", "`address` that serves /metrics, or 0")
	f.StringVar(&s.HealthAddress, "health-address", ":8081", "`address` that serves /healthz and /readyz, or 0")
	f.BoolVar(&s.Pprof, "pprof", false, "serve profiles under /debug/pprof/ on the metrics address, to whoever reaches it")
	f.StringVar(&s.TracingEndpoint, "tracing-endpoint", "", "`URL` of an OpenTelemetry collector that gets a trace of every pass over a Gateway, by OTLP over gRPC: http://host:4317, or https:// for TLS (default none)")
	f.StringVar(&s.LogLevel, "log-level", "info", "least `level` that is logged: "+strings.Join(LogLevels, ", "))
	f.StringVar(&s.LogFormat, "log-format", "json", "`format` of the log: "+strings.Join(LogFormats, ", "))
	return f
}

// EnvName returns the environment variable that stands for a flag:
// "cluster-id" is TUNNEL_GATEWAY_CLUSTER_ID. Those for Cloudflare have the
// names that its own tools use.
func EnvName(flag string) string {
	name := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	if strings.HasPrefix(name, "CLOUDFLARE_") || name == "KUBECONFIG" {
		return name
	}
	return "TUNNEL_GATEWAY_" + name
}

// FromEnvironment sets the flags that were not given from the environment. An
// empty variable counts as not set. The errors name the variable, never its
// value.
func FromEnvironment(groups []Group, lookup func(string) (string, bool)) error {
	var errs []error
	for _, group := range groups {
		group.Flags.VisitAll(func(f *pflag.Flag) {
			value, ok := lookup(EnvName(f.Name))
			if f.Changed || !ok || value == "" {
				return
			}
			if err := f.Value.Set(value); err != nil {
				errs = append(errs, fmt.Errorf("%s is not a valid %s, see --%s", EnvName(f.Name), f.Value.Type(), f.Name))
			}
		})
	}
	return errors.Join(errs...)
}

// secretValue is a flag whose value never prints.
type secretValue Secret

func (s *secretValue) String() string { return Secret(*s).String() }

func (s *secretValue) Set(value string) error {
	*s = secretValue(strings.TrimSpace(value))
	return nil
}

func (*secretValue) Type() string { return "string" }

// Usage explains the flags by group, with their variables.
func Usage(use string, groups []Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", use)
	for _, group := range groups {
		explained := pflag.NewFlagSet(group.Title, pflag.ContinueOnError)
		group.Flags.VisitAll(func(f *pflag.Flag) {
			shown := *f
			shown.Usage += " [" + EnvName(f.Name) + "]"
			explained.AddFlag(&shown)
		})
		fmt.Fprintf(&b, "\n%s:\n%s", group.Title, explained.FlagUsagesWrapped(100))
	}
	return b.String()
}
