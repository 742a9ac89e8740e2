package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

const token = "s3cr3t-t0ken"

// required are variables for a default account with an API token.
var required = map[string]string{"CLOUDFLARE_ACCOUNT_ID": "account", "CLOUDFLARE_API_TOKEN": token}

// parse returns the configuration that flags and environment variables set.
func parse(t *testing.T, environment map[string]string, arguments ...string) (*config.Config, error) {
	t.Helper()
	c := &config.Config{}
	groups := c.Flags()
	all := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, group := range groups {
		all.AddFlagSet(group.Flags)
	}
	if err := all.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	err := config.FromEnvironment(groups, func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
	return c, err
}

// valid returns the default configuration with the required variables.
func valid(t *testing.T) *config.Config {
	t.Helper()
	c, err := parse(t, required)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultsAreValid(t *testing.T) {
	c := valid(t)
	if err := c.Validate(); err != nil {
		t.Errorf("Validate of the defaults: %v", err)
	}
	if !c.Kubernetes.LeaderElection {
		t.Error("leader election is off by default")
	}
	if c.Gateway.ControllerName != "tunnelgateway.dev/controller" || c.Gateway.ClusterDomain != "cluster.local" {
		t.Errorf("controller name = %q, cluster domain = %q", c.Gateway.ControllerName, c.Gateway.ClusterDomain)
	}
}

// nonDefault has a value for each flag that differs from its default.
var nonDefault = map[string]string{
	"cloudflare-account-id":       "account",
	"cloudflare-api-token":        token,
	"cloudflare-api-token-secret": "platform/cloudflare",
	"cloudflare-base-url":         "http://127.0.0.1:8080/client/v4",
	"controller-name":             "example.com/controller",
	"cluster-id":                  "west",
	"cluster-domain":              "k8s.example",
	"retirement-delay":            "5m",
	"drift-interval":              "1m",
	"inventory-interval":          "2m",
	"signing-key-secret":          "dns-key",
	"workers":                     "9",
	"kubeconfig":                  "/kubeconfig",
	"kube-api-qps":                "5.5",
	"kube-api-burst":              "7",
	"controller-namespace":        "gateways",
	"namespaces":                  "team-a,team-b",
	"validate-certificates":       "false",
	"certificate-namespaces":      "team-a",
	"leader-election":             "false",
	"leader-election-id":          "lease",
	"leader-election-namespace":   "system",
	"xds-service":                 "other-xds",
	"xds-bind-address":            "127.0.0.1:18001",
	"pod-ip":                      "fd00::1",
	"metrics-address":             "0",
	"health-address":              "127.0.0.1:9000",
	"pprof":                       "true",
	"tracing-endpoint":            "http://collector:4317",
	"log-level":                   "debug",
	"log-format":                  "console",
}

// TestEveryFlagHasAnEnvironmentVariable sets each flag on the command line and in
// the environment, and checks that the usage text names both.
func TestEveryFlagHasAnEnvironmentVariable(t *testing.T) {
	defaults := &config.Config{}
	groups := defaults.Flags()
	usage := config.Usage("tunnel-gateway controller [flags]", groups)
	for _, group := range groups {
		if !strings.Contains(usage, "\n"+group.Title+":\n") {
			t.Errorf("the usage has no group %q", group.Title)
		}
		group.Flags.VisitAll(func(f *pflag.Flag) {
			value, ok := nonDefault[f.Name]
			if !ok {
				t.Errorf("the test has no value for --%s", f.Name)
				return
			}
			if f.Usage == "" || !strings.Contains(usage, "--"+f.Name+" ") || !strings.Contains(usage, "["+config.EnvName(f.Name)+"]") {
				t.Errorf("the usage does not contain --%s and %s", f.Name, config.EnvName(f.Name))
			}
			byFlag, err := parse(t, nil, "--"+f.Name+"="+value)
			if err != nil {
				t.Fatal(err)
			}
			byVariable, err := parse(t, map[string]string{config.EnvName(f.Name): value})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(byFlag, byVariable, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("--%s and its variable have different effects (-flag +variable):\n%s", f.Name, diff)
			}
			if cmp.Equal(defaults, byFlag, cmpopts.EquateComparable(netip.Addr{})) {
				t.Errorf("--%s=%s has no effect", f.Name, value)
			}
		})
	}
}

func TestVariableNamesAreDerivedFromFlags(t *testing.T) {
	for _, test := range []struct{ flag, want string }{
		{"cluster-id", "TUNNEL_GATEWAY_CLUSTER_ID"},
		{"kube-api-qps", "TUNNEL_GATEWAY_KUBE_API_QPS"},
		{"cloudflare-account-id", "CLOUDFLARE_ACCOUNT_ID"},
		{"cloudflare-api-token", "CLOUDFLARE_API_TOKEN"},
		{"cloudflare-base-url", "CLOUDFLARE_BASE_URL"},
		{"kubeconfig", "KUBECONFIG"},
	} {
		if got := config.EnvName(test.flag); got != test.want {
			t.Errorf("EnvName(%q) = %q, want %q", test.flag, got, test.want)
		}
	}
}

func TestVariablesSetFlagsThatAreNotGiven(t *testing.T) {
	for name, test := range map[string]struct {
		environment map[string]string
		arguments   []string
		want        int // workers
		wantErr     string
	}{
		"a variable sets its flag":             {environment: map[string]string{"TUNNEL_GATEWAY_WORKERS": "7"}, want: 7},
		"a flag overrides its variable":        {environment: map[string]string{"TUNNEL_GATEWAY_WORKERS": "7"}, arguments: []string{"--workers=8"}, want: 8},
		"an empty variable has no effect":      {environment: map[string]string{"TUNNEL_GATEWAY_WORKERS": ""}, want: 4},
		"a flag overrides an invalid variable": {environment: map[string]string{"TUNNEL_GATEWAY_WORKERS": "many"}, arguments: []string{"--workers=8"}, want: 8},
		"an invalid variable": {
			environment: map[string]string{"TUNNEL_GATEWAY_WORKERS": "hunter2"}, want: 4,
			wantErr: "TUNNEL_GATEWAY_WORKERS must be a valid int for --workers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(t, test.environment, test.arguments...)
			if got := message(err); got != test.wantErr {
				t.Errorf("error = %q, want %q", got, test.wantErr)
			}
			if test.wantErr == "" && c.Gateway.Workers != test.want {
				t.Errorf("workers = %d, want %d", c.Gateway.Workers, test.want)
			}
		})
	}
}

// message returns the error text, or "" for nil.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFromEnvironmentReportsAllInvalidVariables(t *testing.T) {
	_, err := parse(t, map[string]string{"TUNNEL_GATEWAY_WORKERS": "x", "TUNNEL_GATEWAY_DRIFT_INTERVAL": "y", "TUNNEL_GATEWAY_LEADER_ELECTION": "z"})
	for _, want := range []string{"TUNNEL_GATEWAY_WORKERS", "TUNNEL_GATEWAY_DRIFT_INTERVAL", "TUNNEL_GATEWAY_LEADER_ELECTION"} {
		if !strings.Contains(message(err), want) {
			t.Errorf("the error %q does not contain %s", err, want)
		}
	}
}

func TestValidateErrorsNameTheFlagAndTheVariable(t *testing.T) {
	for flag, values := range map[string][]string{
		"cloudflare-base-url":       {"api.cloudflare.com", "ftp://api.example.com", "http://", "http://[::1", "/client/v4"},
		"controller-name":           {"controller", "/controller", "example.com/", "Example.com/controller", "example.com/con troller"},
		"cluster-id":                {"West", "a.b", "-west", strings.Repeat("a", 64)},
		"cluster-domain":            {"", ".", "cluster.local.", ".cluster.local", "cluster local", "Cluster.local"},
		"drift-interval":            {"9s", "0s", "-1m"},
		"inventory-interval":        {"9s", "0s", "-1m"},
		"signing-key-secret":        {"", "Key", "a/b"},
		"workers":                   {"0", "-1"},
		"kube-api-qps":              {"-1", "NaN"},
		"kube-api-burst":            {"0", "-1"},
		"namespaces":                {"Team", "a,b/c", "a b", ",a"},
		"certificate-namespaces":    {"Team", "a,b/c"},
		"leader-election-id":        {"", "Lease", "a/b"},
		"controller-namespace":      {"Not A Namespace", "a.b"},
		"leader-election-namespace": {"Not A Namespace", "a.b"},
		"xds-service":               {"", "Xds", "a.b", "1a", strings.Repeat("a", 64)},
		"xds-bind-address":          {"", "0", "18000", "localhost:", ":99999"},
		"metrics-address":           {"", "8080", "localhost", "localhost:", "localhost:99999", "localhost:8080:1"},
		"health-address":            {"", "8081", "localhost:", ":-1"},
		"tracing-endpoint":          {"collector", "collector:4317", "http://collector", "grpc://collector:4317", "http://:4317", "http://collector:4317/v1/traces", "http://user:s3cr3t@collector:4317"},
		"log-level":                 {"", "INFO", "trace"},
		"log-format":                {"", "JSON", "text"},
	} {
		for _, value := range values {
			t.Run(flag+"="+value, func(t *testing.T) {
				c, err := parse(t, required, "--"+flag+"="+value)
				if err != nil {
					t.Fatal(err)
				}
				err = c.Validate()
				for _, want := range []string{"--" + flag, config.EnvName(flag)} {
					if !strings.Contains(message(err), want+" ") && !strings.Contains(message(err), want+")") {
						t.Errorf("Validate = %v, want an error with %s", err, want)
					}
				}
			})
		}
	}
}

func TestValidateAcceptsValidValues(t *testing.T) {
	for _, argument := range []string{
		"--cloudflare-base-url=https://api.example.com/client/v4",
		"--controller-name=example.com/a/b~c",
		"--cluster-id=9d3c2a44-8d4a-4f2b-9d8e-3a0f4c4b6f11",
		"--cluster-domain=k8s", "--drift-interval=10s", "--kube-api-qps=0.5", "--kube-api-qps=0",
		"--namespaces=team-a", "--namespaces=team-a,team-b", "--validate-certificates=false", "--certificate-namespaces=team-a,team-b",
		"--metrics-address=0", "--health-address=[::1]:0", "--metrics-address=:http",
		"--xds-service=a", "--xds-bind-address=[::1]:0", "--xds-bind-address=10.0.0.1:18000",
		"--log-level=warn", "--log-format=console",
		"--pprof", "--tracing-endpoint=http://collector.tracing.svc:4317", "--tracing-endpoint=https://[::1]:4317",
	} {
		t.Run(argument, func(t *testing.T) {
			c, err := parse(t, required, argument)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Validate(); err != nil {
				t.Errorf("Validate = %v", err)
			}
		})
	}
}

func TestValidateRequiresOneSourceOfTheToken(t *testing.T) {
	for _, test := range []struct{ token, secret, want string }{
		{"", "platform/cloudflare", ""},
		{"word", "", ""},
		{"word", "platform/cloudflare", "must not be set together"},
		{"", "cloudflare", "must be of the form namespace/name"},
		{"", "/cloudflare", "must be of the form namespace/name"},
		{"", "platform/", "must be of the form namespace/name"},
		{"", "Plat/form", "must be of the form namespace/name"},
		{"", "a/b/c", "must be of the form namespace/name"},
	} {
		c := valid(t)
		c.Cloudflare.APIToken, c.Cloudflare.APITokenSecret = config.Secret(test.token), test.secret
		err := c.Validate()
		if test.want == "" && err != nil || test.want != "" && !strings.Contains(message(err), "--cloudflare-api-token-secret (or CLOUDFLARE_API_TOKEN_SECRET) "+test.want) {
			t.Errorf("token %q and Secret %q: Validate = %v, want %q", test.token, test.secret, err, test.want)
		}
	}
}

func TestProfilesRequireTheMetricsAddress(t *testing.T) {
	c := valid(t)
	if c.Serving.Pprof || c.Serving.TracingEndpoint != "" {
		t.Error("profiles or traces are enabled by default")
	}
	c.Serving.Pprof, c.Serving.MetricsAddress = true, "0"
	if err := c.Validate(); !strings.Contains(message(err), "--pprof (or TUNNEL_GATEWAY_PPROF) requires a --metrics-address") {
		t.Errorf("Validate = %v", err)
	}
}

func TestValidateIgnoresTheLeaseWithoutLeaderElection(t *testing.T) {
	c := valid(t)
	c.Kubernetes.LeaderElection, c.Kubernetes.LeaderElectionID = false, ""
	if err := c.Validate(); err != nil {
		t.Errorf("Validate = %v", err)
	}
}

func TestValidateReturnsAllErrors(t *testing.T) {
	c := &config.Config{}
	err := c.Validate()
	for _, flag := range []string{
		"--controller-name", "--cluster-domain", "--drift-interval", "--workers", "--kube-api-burst",
		"--xds-service", "--xds-bind-address", "--metrics-address", "--health-address", "--log-level", "--log-format",
	} {
		if !strings.Contains(message(err), flag) {
			t.Errorf("the error %q does not contain %s", err, flag)
		}
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	c := valid(t)
	secret := c.Cloudflare.APIToken
	if string(secret) != token {
		t.Fatalf("token = %q, want %q", string(secret), token)
	}
	for _, value := range []any{secret, &secret, c, *c, c.Cloudflare, []config.Secret{secret}, map[string]config.Secret{"token": secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			wantHidden(t, fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, value))
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		wantHidden(t, fmt.Sprintf("JSON of %T", value), string(text))
		if text, err = yaml.Marshal(value); err != nil {
			t.Fatal(err)
		}
		wantHidden(t, fmt.Sprintf("YAML of %T", value), string(text))
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "value", value)
		slog.New(slog.NewTextHandler(&log, nil)).Info("settings", "value", value)
		wantHidden(t, fmt.Sprintf("log of %T", value), log.String())
	}
}

func TestValidateCertificateNamespaces(t *testing.T) {
	for arguments, want := range map[string]string{
		"--certificate-namespaces=a --validate-certificates=false": "requires --validate-certificates",
		"--certificate-namespaces=a,b --namespaces=a":              `must contain only namespaces of --namespaces, got "b"`,
		"--certificate-namespaces=a --namespaces=a,b":              "",
	} {
		c, err := parse(t, required, strings.Fields(arguments)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); (err == nil) != (want == "") || !strings.Contains(message(err), want) {
			t.Errorf("%s: Validate = %v, want %q", arguments, err, want)
		}
	}
}

func TestCompleteSetsTheNamespaces(t *testing.T) {
	// Both namespaces default to the controller pod's namespace. Outside a cluster,
	// --controller-namespace is required.
	for name, test := range map[string]struct {
		arguments          []string
		pod                string
		controller, leader string
		missing            string
	}{
		"defaults in a pod":                                  {nil, "gateways", "gateways", "gateways", ""},
		"set in a pod":                                       {[]string{"--controller-namespace=given"}, "gateways", "given", "given", ""},
		"set outside a cluster":                              {[]string{"--controller-namespace=given"}, "", "given", "given", ""},
		"Lease in another namespace":                         {[]string{"--leader-election-namespace=leases"}, "gateways", "gateways", "leases", ""},
		"not set outside a cluster":                          {nil, "", "", "", "--controller-namespace (or TUNNEL_GATEWAY_CONTROLLER_NAMESPACE) is missing: it has no default outside a cluster"},
		"not set outside a cluster, without leader election": {[]string{"--leader-election=false"}, "", "", "", "--controller-namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(t, nil, test.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			err = c.Complete(test.pod)
			if test.missing != "" {
				if !strings.Contains(message(err), test.missing) {
					t.Errorf("Complete = %v, want %q", err, test.missing)
				}
				return
			}
			if k := c.Kubernetes; err != nil || k.ControllerNamespace != test.controller || k.LeaderElectionNamespace != test.leader {
				t.Errorf("namespaces = %q and %q (%v), want %q and %q", k.ControllerNamespace, k.LeaderElectionNamespace, err, test.controller, test.leader)
			}
		})
	}
}

func TestTokenSecretMustBeInTheControllersNamespace(t *testing.T) {
	for secret, want := range map[string]string{
		"gateways/cloudflare": "",
		"vault/cloudflare": `--cloudflare-api-token-secret (or CLOUDFLARE_API_TOKEN_SECRET) ` +
			`must name a Secret in the controller's namespace "gateways", got "vault/cloudflare"`,
	} {
		c, err := parse(t, nil, "--cloudflare-api-token=", "--cloudflare-api-token-secret="+secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := message(c.Complete("gateways")); got != want {
			t.Errorf("%s: Complete = %q, want %q", secret, got, want)
		}
	}
}

func TestSecretIsNotInUsageOrErrors(t *testing.T) {
	c := &config.Config{}
	groups := c.Flags()
	err := config.FromEnvironment(groups, func(string) (string, bool) { return token, true })
	if err == nil {
		t.Fatal("FromEnvironment = nil, want errors")
	}
	wantHidden(t, "error of FromEnvironment", err.Error())
	wantHidden(t, "help text", config.Usage("tunnel-gateway controller [flags]", groups))
	for _, group := range groups {
		if f := group.Flags.Lookup("cloudflare-api-token"); f != nil {
			wantHidden(t, "flag", f.Value.String())
		}
	}
	*c = config.Config{Cloudflare: config.Cloudflare{APIToken: token, BaseURL: "http://user:" + token + "@[bad"}}
	wantHidden(t, "error of Validate", message(c.Validate()))
}

func TestSecretFlagTrimsWhiteSpace(t *testing.T) {
	c, err := parse(t, map[string]string{"CLOUDFLARE_API_TOKEN": token + "\n"})
	if err != nil || string(c.Cloudflare.APIToken) != token {
		t.Errorf("token = %q, %v; want %q", string(c.Cloudflare.APIToken), err, token)
	}
}

func TestEmptySecretPrintsAsEmpty(t *testing.T) {
	if got := fmt.Sprint(config.Secret("")); got != "" {
		t.Errorf("an empty secret is printed as %q", got)
	}
}

// wantHidden checks that text does not contain the token.
func wantHidden(t *testing.T, name, text string) {
	t.Helper()
	if strings.Contains(text, token) {
		t.Errorf("the %s contains the secret: %s", name, text)
	}
}
