// Package config defines the controller's configuration. The controller reads it from
// flags and the environment, validates it once, and never changes it.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

//go:generate go run ../../test/docgen flags

// Config is the controller's whole configuration.
type Config struct {
	Cloudflare Cloudflare
	Gateway    Gateway
	Kubernetes Kubernetes
	XDS        XDS
	Serving    Serving
}

// Cloudflare configures the default account. A Gateway uses it if its GatewayClass does
// not set one in a TunnelConfiguration.
type Cloudflare struct {
	AccountID string
	// APIToken is the API token. Only one of APIToken and APITokenSecret may be
	// set.
	APIToken Secret
	// APITokenSecret is the "namespace/name" of a Secret with the API token. For the
	// controller, the Secret must be in the controller's namespace.
	APITokenSecret string
	// BaseURL is the Cloudflare API's URL; the public API when empty.
	BaseURL string
}

// Gateway configures how the controller serves Gateways.
type Gateway struct {
	// ControllerName selects the GatewayClasses that the controller manages, by their
	// spec.controllerName.
	ControllerName string
	// ClusterID prefixes tunnel names. When it is empty, the controller derives it from
	// the kube-system namespace UID and ControllerName.
	ClusterID string
	// ClusterDomain is the cluster's DNS domain, without a trailing dot.
	ClusterDomain string
	// RetirementDelay is how long a Gateway must be gone before its tunnel retires.
	RetirementDelay time.Duration
	// DriftInterval is how often the controller reads a tunnel's configuration to detect
	// drift.
	DriftInterval time.Duration
	// InventoryInterval is how often the controller lists an account's tunnels.
	InventoryInterval time.Duration
	// SigningKeySecret names the Secret, in the controller's namespace, with the key that
	// signs the comments of DNS records.
	SigningKeySecret string
	// Workers limits how many Gateways are reconciled concurrently.
	Workers int
}

// Kubernetes configures the connection to the API server, the namespaces and
// leader election.
type Kubernetes struct {
	// Kubeconfig is the path to a kubeconfig file.
	Kubeconfig string
	// QPS and Burst limit the requests to the API server per second: on average, and in a
	// burst. QPS 0 means no limit.
	QPS   float32
	Burst int
	// ControllerNamespace is where the controller creates objects. When it is empty,
	// [Config.Complete] sets it.
	ControllerNamespace string
	// Namespaces are the namespaces whose objects the controller serves; all
	// namespaces when empty.
	Namespaces []string
	// ValidateCertificates reports whether the controller reads and validates the
	// certificates that listeners refer to.
	ValidateCertificates bool
	// CertificateNamespaces are the namespaces in which the controller validates
	// certificates; all served namespaces when empty.
	CertificateNamespaces []string

	LeaderElection   bool
	LeaderElectionID string
	// LeaderElectionNamespace is where the Lease is. When it is empty, [Config.Complete]
	// sets it.
	LeaderElectionNamespace string
}

// Serving configures the controller's endpoints, traces and log.
type Serving struct {
	// MetricsAddress and HealthAddress have the form host:port; "0" disables the
	// endpoint.
	MetricsAddress string
	HealthAddress  string
	// Pprof enables profiles on the metrics address.
	Pprof bool
	// TracingEndpoint is the URL to which the controller sends OpenTelemetry traces;
	// empty disables them.
	TracingEndpoint string
	LogLevel        string
	LogFormat       string
}

// LogLevels are the values that LogLevel can have.
var LogLevels = []string{"debug", "info", "warn", "error"}

// LogFormats are the values that LogFormat can have.
var LogFormats = []string{"json", "console"}

// Validate returns all errors in the configuration. Each error names the flag and
// its environment variable.
func (c *Config) Validate() error {
	return errors.Join(
		c.Cloudflare.validate(), c.Gateway.validate(), c.Kubernetes.validate(), c.XDS.validate(), c.Serving.validate(),
	)
}

// idPattern matches account IDs and API tokens.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (c *Cloudflare) validate() error {
	var errs []error
	if c.AccountID == "" && c.HasDefaultAccount() {
		errs = append(errs, missing("cloudflare-account-id", "set the ID of the account that the API token is for"))
	}
	if c.HasDefaultAccount() && c.APIToken == "" && c.APITokenSecret == "" {
		errs = append(errs, missing("cloudflare-api-token", "set a token with the permission Cloudflare Tunnel: Edit, or --cloudflare-api-token-secret"))
	}
	return errors.Join(append(errs, c.CheckFormat())...)
}

// CheckFormat validates the settings that are set. It requires none.
func (c *Cloudflare) CheckFormat() error {
	var errs []error
	if c.AccountID != "" && !idPattern.MatchString(c.AccountID) {
		errs = append(errs, invalid("cloudflare-account-id", "must contain only letters, digits, '-' and '_', got %q", c.AccountID))
	}
	errs = append(errs, c.checkTokenSource())
	if c.APIToken != "" && !idPattern.MatchString(string(c.APIToken)) {
		errs = append(errs, invalid("cloudflare-api-token", "must contain only letters, digits, '-' and '_'"))
	}
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
			errs = append(errs, invalid("cloudflare-base-url", "must be an absolute http or https URL"))
		}
	}
	return errors.Join(errs...)
}

// HasDefaultAccount reports whether a default account or its API token is set.
func (c *Cloudflare) HasDefaultAccount() bool {
	return c.AccountID != "" || c.APIToken != "" || c.APITokenSecret != ""
}

// checkTokenSource validates that APIToken and APITokenSecret are not both set, and that
// APITokenSecret has the form namespace/name.
func (c *Cloudflare) checkTokenSource() error {
	switch {
	case c.APIToken != "" && c.APITokenSecret != "":
		return invalid("cloudflare-api-token-secret", "must not be set together with %s", flagAndVariable("cloudflare-api-token"))
	case c.APITokenSecret == "":
		return nil
	}
	namespace, name, ok := strings.Cut(c.APITokenSecret, "/")
	if !ok || CheckNamespace(namespace) != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return invalid("cloudflare-api-token-secret", "must be of the form namespace/name, got %q", c.APITokenSecret)
	}
	return nil
}

// controllerNamePattern is how the Gateway API validates
// GatewayClass.spec.controllerName.
var controllerNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$`)

// CheckControllerName validates a controller name, for example example.com/tunnels.
func CheckControllerName(name string) error {
	if !controllerNamePattern.MatchString(name) {
		return fmt.Errorf("must be of the form domain/path, got %q", name)
	}
	return nil
}

// CheckClusterDomain validates a cluster's DNS domain.
func CheckClusterDomain(domain string) error {
	if len(validation.IsDNS1123Subdomain(domain)) > 0 {
		return fmt.Errorf("must be a DNS name without a leading or trailing dot, got %q", domain)
	}
	return nil
}

// CheckClusterID validates a cluster ID. It may be empty.
func CheckClusterID(id string) error {
	if id != "" && len(validation.IsDNS1123Label(id)) > 0 {
		return fmt.Errorf("must be a DNS label of at most 63 characters, got %q", id)
	}
	return nil
}

// CheckNamespace validates a namespace name.
func CheckNamespace(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("must be a valid namespace name, got %q", name)
	}
	return nil
}

func (g *Gateway) validate() error {
	var errs []error
	if err := CheckControllerName(g.ControllerName); err != nil {
		errs = append(errs, invalid("controller-name", "%w", err))
	}
	if err := CheckClusterID(g.ClusterID); err != nil {
		errs = append(errs, invalid("cluster-id", "%w", err))
	}
	if err := CheckClusterDomain(g.ClusterDomain); err != nil {
		errs = append(errs, invalid("cluster-domain", "%w", err))
	}
	if g.RetirementDelay < 0 {
		errs = append(errs, invalid("retirement-delay", "must not be negative, got %s", g.RetirementDelay))
	}
	if g.DriftInterval < 10*time.Second {
		errs = append(errs, invalid("drift-interval", "must be at least 10s, got %s", g.DriftInterval))
	}
	if g.InventoryInterval < 10*time.Second {
		errs = append(errs, invalid("inventory-interval", "must be at least 10s, got %s", g.InventoryInterval))
	}
	if len(validation.IsDNS1123Subdomain(g.SigningKeySecret)) > 0 {
		errs = append(errs, invalid("signing-key-secret", "must be a valid Secret name, got %q", g.SigningKeySecret))
	}
	if g.Workers < 1 {
		errs = append(errs, invalid("workers", "must be at least 1, got %d", g.Workers))
	}
	return errors.Join(errs...)
}

func (k *Kubernetes) validate() error {
	var errs []error
	if !(k.QPS >= 0) { // also rejects NaN
		errs = append(errs, invalid("kube-api-qps", "must be 0 for no limit, or greater than 0, got %v", k.QPS))
	}
	if k.Burst < 1 {
		errs = append(errs, invalid("kube-api-burst", "must be at least 1, got %d", k.Burst))
	}
	if k.LeaderElection && len(validation.IsDNS1123Subdomain(k.LeaderElectionID)) > 0 {
		errs = append(errs, invalid("leader-election-id", "must be a valid Lease name, got %q", k.LeaderElectionID))
	}
	errs = append(errs, checkNamespaces("namespaces", k.Namespaces), k.checkCertificates())
	for _, setting := range []struct{ flag, namespace string }{
		{"controller-namespace", k.ControllerNamespace}, {"leader-election-namespace", k.LeaderElectionNamespace},
	} {
		if setting.namespace == "" {
			continue
		}
		if err := CheckNamespace(setting.namespace); err != nil {
			errs = append(errs, invalid(setting.flag, "%w", err))
		}
	}
	return errors.Join(errs...)
}

func checkNamespaces(flag string, namespaces []string) error {
	var errs []error
	for _, namespace := range namespaces {
		if CheckNamespace(namespace) != nil {
			errs = append(errs, invalid(flag, "must contain only valid namespace names, got %q", namespace))
		}
	}
	return errors.Join(errs...)
}

// checkCertificates validates CertificateNamespaces.
func (k *Kubernetes) checkCertificates() error {
	const flag = "certificate-namespaces"
	errs := []error{checkNamespaces(flag, k.CertificateNamespaces)}
	if len(k.CertificateNamespaces) > 0 && !k.ValidateCertificates {
		errs = append(errs, invalid(flag, "requires --validate-certificates"))
	}
	for _, namespace := range k.CertificateNamespaces {
		if len(k.Namespaces) > 0 && !slices.Contains(k.Namespaces, namespace) {
			errs = append(errs, invalid(flag, "must contain only namespaces of --namespaces, got %q", namespace))
		}
	}
	return errors.Join(errs...)
}

// Complete sets the default ControllerNamespace and LeaderElectionNamespace. podNamespace
// is the controller pod's namespace, or "" outside a cluster.
//
// It returns an error if there is no default, or if the Secret with the API token
// is not in the controller's namespace.
func (c *Config) Complete(podNamespace string) error {
	if err := c.Kubernetes.complete(podNamespace); err != nil {
		return err
	}
	return c.Cloudflare.checkTokenNamespace(c.Kubernetes.ControllerNamespace)
}

// checkTokenNamespace validates that the Secret with the API token is in the
// controller's namespace. The controller has no permission to read it elsewhere.
func (c *Cloudflare) checkTokenNamespace(controller string) error {
	namespace, _, _ := strings.Cut(c.APITokenSecret, "/")
	if c.APITokenSecret == "" || namespace == controller {
		return nil
	}
	return invalid("cloudflare-api-token-secret", "must name a Secret in the controller's namespace %q, got %q", controller, c.APITokenSecret)
}

func (k *Kubernetes) complete(podNamespace string) error {
	k.ControllerNamespace = cmp.Or(k.ControllerNamespace, podNamespace)
	if k.ControllerNamespace == "" {
		return missing("controller-namespace", "it has no default outside a cluster")
	}
	k.LeaderElectionNamespace = cmp.Or(k.LeaderElectionNamespace, k.ControllerNamespace)
	return nil
}

func (s *Serving) validate() error {
	return errors.Join(
		checkAddress("metrics-address", s.MetricsAddress),
		checkAddress("health-address", s.HealthAddress),
		s.checkPprof(),
		checkEndpoint("tracing-endpoint", s.TracingEndpoint),
		oneOf("log-level", s.LogLevel, LogLevels),
		oneOf("log-format", s.LogFormat, LogFormats),
	)
}

func (s *Serving) checkPprof() error {
	if s.Pprof && s.MetricsAddress == "0" {
		return invalid("pprof", "requires a --metrics-address other than 0")
	}
	return nil
}

// checkEndpoint validates that endpoint is empty or has the form http://host:port or
// https://host:port.
func checkEndpoint(flag, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "" || u.Port() == "" ||
		*u != (url.URL{Scheme: u.Scheme, Host: u.Host}) {
		return invalid(flag, "must be of the form http://host:port or https://host:port")
	}
	return nil
}

// checkAddress validates that address has the form host:port, or is "0", which disables
// the endpoint.
func checkAddress(flag, address string) error {
	if address == "0" || isHostPort(address) {
		return nil
	}
	return invalid(flag, "must be of the form host:port, or 0 to disable it, got %q", address)
}

// isHostPort reports whether address has the form host:port. The host can be empty.
func isHostPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return false
	}
	_, err = net.LookupPort("tcp", port)
	return err == nil
}

// oneOf validates that value is one of the allowed values.
func oneOf(flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return invalid(flag, "must be one of %s, got %q", strings.Join(allowed, ", "), value)
}

// missing returns the error about a required flag that is not set.
func missing(flag, advice string) error {
	return fmt.Errorf("%s is missing: %s", flagAndVariable(flag), advice)
}

// invalid returns the error about a flag's value. The format describes the requirement,
// as in "must be at least 1".
func invalid(flag, format string, args ...any) error {
	return fmt.Errorf("%s "+format, append([]any{flagAndVariable(flag)}, args...)...)
}

// flagAndVariable names a flag and its environment variable.
func flagAndVariable(flag string) string { return fmt.Sprintf("--%s (or %s)", flag, EnvName(flag)) }
