package main

import (
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

var environment = map[string]string{
	"ENVOY": "/none/envoy", "OPEN_PORT": "20001", "PROTECTED_PORT": "20002", "READY_PORT": "20003",
	"XDS_ADDRESS": "127.0.0.1:20004", "CA_FILE": "/ca.pem",
}

func getenv(name string) string { return environment[name] }

// deployed returns the arguments of a deployed Envoy, with further ones.
func deployed(configuration string, more ...string) []string {
	return append([]string{"--config-yaml", configuration, "--concurrency", "2", "--log-level", "info", "--disable-hot-restart"}, more...)
}

func bootstrap(t *testing.T) []byte {
	t.Helper()
	text, err := protojson.Marshal(envoy.Bootstrap(envoy.BootstrapOptions{Controller: "tunnel-gateway-xds.tunnel-gateway.svc.cluster.local.", ServesMetrics: true}))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestConfigurationIsAdaptedToTheMachine(t *testing.T) {
	r, err := newReplacements(getenv)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.adapt(bootstrap(t))
	if err != nil {
		t.Fatal(err)
	}
	adapted := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal(text, adapted); err != nil {
		t.Fatal(err)
	}
	static := adapted.GetStaticResources()
	ports := map[string]uint32{}
	for _, l := range static.GetListeners() {
		ports[l.GetName()] = l.GetAddress().GetSocketAddress().GetPortValue()
	}
	for name, want := range map[string]uint32{"open": 20001, "protected": 20002, "ready": 20003} {
		if ports[name] != want {
			t.Errorf("the listener %s has port %d, want %d", name, ports[name], want)
		}
	}
	for _, c := range static.GetClusters() {
		if c.GetName() != xdsCluster {
			continue
		}
		address := c.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
		if address.GetAddress() != "127.0.0.1" || address.GetPortValue() != 20004 {
			t.Errorf("the controller's address is %v", address)
		}
	}
	if file := static.GetSecrets()[0].GetValidationContext().GetTrustedCa().GetFilename(); file != "/ca.pem" {
		t.Errorf("the file of the certificate authorities is %s", file)
	}
	for _, rest := range []string{"svc.cluster.local", "18000", envoy.CAPath, "10080", "10081", "2001,"} {
		if strings.Contains(string(text), rest) {
			t.Errorf("the configuration still contains %s", rest)
		}
	}
}

func TestUnexpectedArgumentsAreRejected(t *testing.T) {
	configuration := string(bootstrap(t))
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown flag":            {deployed(configuration, "--base-id", "1"), "base-id"},
		"a further argument":         {deployed(configuration, "other"), `unexpected argument "other"`},
		"no configuration":           {deployed(""), "--config-yaml is required"},
		"no JSON":                    {deployed("admin: {}"), "--config-yaml: "},
		"a listener with a port":     {deployed(strings.Replace(configuration, "10080", "10082", 1)), "the listener open has the unknown port 10082"},
		"all cores":                  {deployed(configuration, "--concurrency", "0"), "--concurrency must be at least 1"},
		"an unknown log level":       {deployed(configuration, "--log-level", "loud"), "--log-level must be one of"},
		"hot restart":                {deployed(configuration, "--disable-hot-restart=false"), "--disable-hot-restart is required"},
		"an Envoy that is not there": {deployed(configuration), "execute /none/envoy"},
	} {
		if err := run(test.arguments, getenv); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one that contains %q", name, err, test.want)
		}
	}
}

func TestIncompleteEnvironmentIsRejected(t *testing.T) {
	for name := range environment {
		without := func(variable string) string {
			if variable == name {
				return ""
			}
			return getenv(variable)
		}
		if err := run(deployed(string(bootstrap(t))), without); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: got error %v, want one that names it", name, err)
		}
	}
}
