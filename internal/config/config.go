// Package config holds the settings of the controller: read from flags and the
// environment, validated once, and never changed afterwards.
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

//go:generate go run ../../test/flagtable

// Config are the controller's settings.
type Config struct {
	Cloudflare Cloudflare
	Gateway    Gateway
	Kubernetes Kubernetes
	Serving    Serving
}

// Cloudflare says which account is worked on, and as whom, unless the
// TunnelConfiguration of a class does.
type Cloudflare struct {
	AccountID string
	// APIToken, or APITokenSecret: the "namespace/name" of a Secret in the
	// controller's namespace that has it.
	APIToken       Secret
	APITokenSecret string
	// BaseURL of the API; Cloudflare's own when empty.
	BaseURL string
}

// Secret is a string that never prints.
type Secret string

// String hides the secret from fmt and from logs.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Gateway are the settings that decide what Gateways get.
type Gateway struct {
	ControllerName string
	// ClusterID begins the name of every tunnel; the UID of the namespace
	// kube-system when empty.
	ClusterID     string
	ClusterDomain string
	// RetirementDelay is how long a Gateway has to be gone until its tunnel retires.
	RetirementDelay time.Duration
	// DriftInterval is how often a tunnel's configuration is read back.
	DriftInterval time.Duration
	// InventoryInterval is how often the account's tunnels are listed.
	InventoryInterval time.Duration
	// Workers is how many Gateways are worked on at once.
	Workers int
}

// Kubernetes says how the API server is reached, and by which of the replicas.
type Kubernetes struct {
	Kubeconfig string
	// QPS and Burst limit the requests to the API server.
	QPS   float32
	Burst int
	// ControllerNamespace is the namespace of the controller's own objects. When
	// it is empty, [Config.Complete] sets it.
	ControllerNamespace string
	// Namespaces are those that are worked in; all when empty.
	Namespaces []string
	// ValidateCertificates is whether the certificates that listeners refer to are
	// read and checked.
	ValidateCertificates bool
	// CertificateNamespaces are the namespaces in which certificates are checked;
	// when empty, all that are worked in.
	CertificateNamespaces []string

	LeaderElection   bool
	LeaderElectionID string
	// LeaderElectionNamespace is the namespace of the Lease. When it is empty,
	// [Config.Complete] sets it.
	LeaderElectionNamespace string
}

// Serving are the controller's own endpoints and its log.
type Serving struct {
	MetricsAddress string
	HealthAddress  string
	// Pprof serves profiles on the metrics address.
	Pprof bool
	// TracingEndpoint is the URL of the collector that gets traces; none when
	// empty.
	TracingEndpoint string
	LogLevel        string
	LogFormat       string
}

// Levels and formats of the log.
var (
	LogLevels  = []string{"debug", "info", "warn", "error"}
	LogFormats = []string{"json", "console"}
)

// Validate returns all that is wrong with the settings, by the flag's name.
func (c *Config) Validate() error {
	return errors.Join(
		c.Cloudflare.validate(), c.Gateway.validate(), c.Kubernetes.validate(), c.Serving.validate(),
	)
}

// idPattern is what IDs and tokens are made of.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (c *Cloudflare) validate() error {
	var errs []error
	if c.AccountID == "" && c.HasDefaultAccount() {
		errs = append(errs, missing("cloudflare-account-id", "the account that the API token is for"))
	}
	if c.HasDefaultAccount() && c.APIToken == "" && c.APITokenSecret == "" {
		errs = append(errs, missing("cloudflare-api-token", "a token with the permission Cloudflare Tunnel: Edit; or name the Secret that has it, with --cloudflare-api-token-secret"))
	}
	return errors.Join(append(errs, c.CheckFormat())...)
}

// CheckFormat returns what is wrong with those settings that are given; it asks
// for none.
func (c *Cloudflare) CheckFormat() error {
	var errs []error
	if c.AccountID != "" && !idPattern.MatchString(c.AccountID) {
		errs = append(errs, invalid("cloudflare-account-id", fmt.Sprintf("has characters that no account ID has: %q", c.AccountID)))
	}
	errs = append(errs, c.checkTokenSource())
	if c.APIToken != "" && !idPattern.MatchString(string(c.APIToken)) {
		errs = append(errs, invalid("cloudflare-api-token", "has characters that no token has"))
	}
	if c.BaseURL != "" {
		u, err := url.Parse(c.BaseURL)
		if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
			errs = append(errs, invalid("cloudflare-base-url", "is not an absolute http or https URL"))
		}
	}
	return errors.Join(errs...)
}

// HasDefaultAccount reports whether there is an account for Gateways whose class names
// none.
func (c *Cloudflare) HasDefaultAccount() bool {
	return c.AccountID != "" || c.APIToken != "" || c.APITokenSecret != ""
}

// checkTokenSource wants at most one of two.
func (c *Cloudflare) checkTokenSource() error {
	switch {
	case c.APIToken != "" && c.APITokenSecret != "":
		return invalid("cloudflare-api-token-secret", "cannot be given together with --cloudflare-api-token (or "+EnvName("cloudflare-api-token")+")")
	case c.APITokenSecret == "":
		return nil
	}
	namespace, name, ok := strings.Cut(c.APITokenSecret, "/")
	if !ok || CheckNamespace(namespace) != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return invalid("cloudflare-api-token-secret", "is not of the form namespace/name")
	}
	return nil
}

// controllerNamePattern is what the API takes for GatewayClass.spec.controllerName.
var controllerNamePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$`)

// CheckControllerName returns what is wrong with the name of a controller.
func CheckControllerName(name string) error {
	if !controllerNamePattern.MatchString(name) {
		return errors.New("is not of the form domain/path")
	}
	return nil
}

// CheckClusterDomain returns what is wrong with the DNS domain of a cluster.
func CheckClusterDomain(domain string) error {
	if len(validation.IsDNS1123Subdomain(domain)) > 0 {
		return errors.New("is not a DNS name, without dots at its ends")
	}
	return nil
}

// CheckClusterID returns what is wrong with a cluster ID, which may be empty.
func CheckClusterID(id string) error {
	if id != "" && len(validation.IsDNS1123Label(id)) > 0 {
		return errors.New("is not a DNS label of at most 63 characters")
	}
	return nil
}

// CheckNamespace returns what is wrong with the name of a namespace.
func CheckNamespace(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return errors.New("is not the name of a namespace")
	}
	return nil
}

func (g *Gateway) validate() error {
	var errs []error
	if err := CheckControllerName(g.ControllerName); err != nil {
		errs = append(errs, invalid("controller-name", err.Error()))
	}
	if err := CheckClusterID(g.ClusterID); err != nil {
		errs = append(errs, invalid("cluster-id", err.Error()))
	}
	if err := CheckClusterDomain(g.ClusterDomain); err != nil {
		errs = append(errs, invalid("cluster-domain", err.Error()))
	}
	if g.RetirementDelay < 0 {
		errs = append(errs, invalid("retirement-delay", "must not be negative"))
	}
	if g.DriftInterval < 10*time.Second {
		errs = append(errs, invalid("drift-interval", "is under 10s"))
	}
	if g.InventoryInterval < 10*time.Second {
		errs = append(errs, invalid("inventory-interval", "is under 10s"))
	}
	if g.Workers < 1 {
		errs = append(errs, invalid("workers", "is under 1"))
	}
	return errors.Join(errs...)
}

func (k *Kubernetes) validate() error {
	var errs []error
	if !(k.QPS > 0) { // NaN is not above 0 either
		errs = append(errs, invalid("kube-api-qps", "is not above 0"))
	}
	if k.Burst < 1 {
		errs = append(errs, invalid("kube-api-burst", "is under 1"))
	}
	if k.LeaderElection && len(validation.IsDNS1123Subdomain(k.LeaderElectionID)) > 0 {
		errs = append(errs, invalid("leader-election-id", "is not the name of a Lease"))
	}
	errs = append(errs, checkNamespaces("namespaces", k.Namespaces), k.checkCertificates())
	for _, given := range []struct{ flag, namespace string }{
		{"controller-namespace", k.ControllerNamespace}, {"leader-election-namespace", k.LeaderElectionNamespace},
	} {
		if given.namespace == "" {
			continue
		}
		if err := CheckNamespace(given.namespace); err != nil {
			errs = append(errs, invalid(given.flag, err.Error()))
		}
	}
	return errors.Join(errs...)
}

func checkNamespaces(flag string, namespaces []string) error {
	var errs []error
	for _, namespace := range namespaces {
		if err := CheckNamespace(namespace); err != nil {
			errs = append(errs, invalid(flag, fmt.Sprintf("has %q, which %v", namespace, err)))
		}
	}
	return errors.Join(errs...)
}

// checkCertificates returns what is wrong with the namespaces in which
// certificates are checked.
func (k *Kubernetes) checkCertificates() error {
	const flag = "certificate-namespaces"
	errs := []error{checkNamespaces(flag, k.CertificateNamespaces)}
	if len(k.CertificateNamespaces) > 0 && !k.ValidateCertificates {
		errs = append(errs, invalid(flag, "needs --validate-certificates"))
	}
	for _, namespace := range k.CertificateNamespaces {
		if len(k.Namespaces) > 0 && !slices.Contains(k.Namespaces, namespace) {
			errs = append(errs, invalid(flag, fmt.Sprintf("has %q, which is not in --namespaces", namespace)))
		}
	}
	return errors.Join(errs...)
}

// Complete sets the namespaces that were not given, and checks that the Secret
// with the API token is in the controller's namespace. podNamespace is the
// namespace of the controller's pod, and empty outside a cluster: then the
// namespace of the controller is required.
func (c *Config) Complete(podNamespace string) error {
	if err := c.Kubernetes.complete(podNamespace); err != nil {
		return err
	}
	return c.Cloudflare.checkTokenNamespace(c.Kubernetes.ControllerNamespace)
}

// checkTokenNamespace returns an error if the Secret with the API token is in
// another namespace than the controller, where it may not read Secrets.
func (c *Cloudflare) checkTokenNamespace(controller string) error {
	namespace, _, _ := strings.Cut(c.APITokenSecret, "/")
	if c.APITokenSecret == "" || namespace == controller {
		return nil
	}
	return invalid("cloudflare-api-token-secret", fmt.Sprintf("must name a Secret in the controller's namespace %q, got %q", controller, c.APITokenSecret))
}

func (k *Kubernetes) complete(podNamespace string) error {
	k.ControllerNamespace = cmp.Or(k.ControllerNamespace, podNamespace)
	if k.ControllerNamespace == "" {
		return missing("controller-namespace", "outside a cluster it has no default")
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
		return invalid("pprof", "needs a --metrics-address that is served")
	}
	return nil
}

// checkEndpoint takes "http://host:port", the same with https, and nothing.
func checkEndpoint(flag, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "" || u.Port() == "" ||
		*u != (url.URL{Scheme: u.Scheme, Host: u.Host}) {
		return invalid(flag, "is not of the form http://host:port or https://host:port")
	}
	return nil
}

// checkAddress takes "host:port", and "0" for not serving at all.
func checkAddress(flag, address string) error {
	if address == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil && port != "" {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return invalid(flag, `is neither host:port nor "0" for none`)
	}
	return nil
}

func oneOf(flag, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return invalid(flag, "is none of "+strings.Join(allowed, ", "))
}

func missing(flag, what string) error {
	return fmt.Errorf("--%s (or %s) is missing: %s", flag, EnvName(flag), what)
}

func invalid(flag, why string) error {
	return fmt.Errorf("--%s (or %s) %s", flag, EnvName(flag), why)
}
