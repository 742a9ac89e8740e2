package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var environment = map[string]string{
	"ENVOY": "/none/envoy", "OPEN_PORT": "20001", "PROTECTED_PORT": "20002", "READY_PORT": "20003",
	"XDS_ADDRESS": "127.0.0.1:20004", "CA_FILE": "/ca.pem",
}

func getenv(name string) string { return environment[name] }

// deployed returns a deployed Envoy's arguments, with further ones.
func deployed(configuration string, more ...string) []string {
	return append([]string{"--config-yaml", configuration, "--concurrency", "2", "--log-level", "info", "--disable-hot-restart"}, more...)
}

// bootstrap returns a deployed Envoy's configuration.
func bootstrap(t *testing.T) []byte {
	t.Helper()
	return read(t, "envoy/testdata/bootstrap.golden.yaml")
}

// bootstrapWithListeners returns an Envoy configuration in version 1 of the schema.
func bootstrapWithListeners(t *testing.T) []byte {
	t.Helper()
	return read(t, "xds/testdata/bootstrap-with-listeners.yaml")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../internal/" + path)
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return configuration
}

func TestConfigurationIsAdaptedToTheMachine(t *testing.T) {
	r, err := newReplacements(getenv)
	if err != nil {
		t.Fatal(err)
	}
	before := bootstrapWithListeners(t)
	adapted, err := r.adapt(before)
	if err != nil {
		t.Fatal(err)
	}
	want := string(before)
	for _, replacement := range [][2]string{
		{`"portValue":10080`, `"portValue":20001`},
		{`"portValue":10081`, `"portValue":20002`},
		{`"portValue":2001`, `"portValue":20003`},
		{`"address":"tunnel-gateway-xds.tunnel-gateway.svc.cluster.local.","portValue":18000`, `"address":"127.0.0.1","portValue":20004`},
		{`"filename":"/etc/ssl/certs/ca-certificates.crt"`, `"filename":"/ca.pem"`},
	} {
		if strings.Count(want, replacement[0]) != 1 {
			t.Fatalf("the configuration does not contain %s once", replacement[0])
		}
		want = strings.Replace(want, replacement[0], replacement[1], 1)
	}
	if diff := cmp.Diff(decode(t, []byte(want)), decode(t, adapted)); diff != "" {
		t.Errorf("the configuration differs (-want +got):\n%s", diff)
	}
}

// The controller's listeners become static, with ports on the machine.
func TestControllersListenersAreAdaptedToTheMachine(t *testing.T) {
	r, err := newReplacements(getenv)
	if err != nil {
		t.Fatal(err)
	}
	adapted, err := r.adapt(bootstrap(t))
	if err != nil {
		t.Fatal(err)
	}
	var root object
	if err := json.Unmarshal(adapted, &root); err != nil {
		t.Fatal(err)
	}
	ports := map[string]any{}
	for _, l := range root.object("staticResources").objects("listeners") {
		ports[l["name"].(string)] = l.object("address").object("socketAddress")["portValue"]
	}
	if diff := cmp.Diff(map[string]any{"open": 20001.0, "protected": 20002.0, "ready": 20003.0}, ports); diff != "" {
		t.Errorf("the ports differ (-want +got):\n%s", diff)
	}
}

func TestLimitOfExpressionsIsReplaced(t *testing.T) {
	r, err := newReplacements(func(name string) string {
		if name == "MAX_PROGRAM_SIZE" {
			return "500"
		}
		return getenv(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	adapted, err := r.adapt(bootstrap(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := `"re2.max_program_size.error_level":500`; !strings.Contains(string(adapted), want) {
		t.Errorf("the configuration does not contain %s", want)
	}
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
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
		"a listener with a port":     {deployed(strings.Replace(string(bootstrapWithListeners(t)), "10080", "10082", 1)), "the listener open has the unknown port 10082"},
		"all cores":                  {deployed(configuration, "--concurrency", "0"), "--concurrency must be at least 1"},
		"an unknown log level":       {deployed(configuration, "--log-level", "loud"), "--log-level must be one of"},
		"hot restart":                {deployed(configuration, "--disable-hot-restart=false"), "--disable-hot-restart is required"},
		"an Envoy that is not there": {deployed(configuration), "execute /none/envoy"},
	} {
		if err := run(test.arguments, getenv); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want an error that contains %q", name, err, test.want)
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
			t.Errorf("without %s: got error %v, want an error that names it", name, err)
		}
	}
}
