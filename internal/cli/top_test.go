package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestTopRejectsInvalidArguments(t *testing.T) {
	withoutCluster(t)
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"a Gateway without a namespace": {[]string{"shared"}, `GATEWAY must be of the form namespace/name, got "shared"`},
		"two Gateways":                  {[]string{"a/a", "b/b"}, "top accepts one Gateway, got 2"},
		"another kind of rows":          {[]string{"--by", "pod"}, `--by must be one of route, backend, hostname, namespace, gateway, got "pod"`},
		"another format":                {[]string{"-o", "yaml"}, `--output must be one of table, json, got "yaml"`},
		"a short interval":              {[]string{"--interval", "1s"}, "--interval must be at least 5s, got 1s: Envoy updates its latencies every 5s"},
		"a negative limit":              {[]string{"--limit", "-1"}, "--limit must be at least 0, got -1"},
		"colors in JSON":                {[]string{"-o", "json", "--color", "always"}, "--color has no effect with --output json"},
		"a namespace of Gateways":       {[]string{"-n", "shop", "--by", "gateway"}, "--namespace has no effect with --by gateway"},
		"an empty namespace":            {[]string{"-n", ""}, "--namespace must not be empty"},
		"no cluster":                    {nil, "no API server found"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"top"}, test.arguments...)...)
			if got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
				t.Errorf("status = %d, stdout = %q, stderr = %q; want status 1 and %q", got.status, got.stdout, got.stderr, test.want)
			}
		})
	}
}

func TestTopNamesTheMissingPermission(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods is forbidden: User \"u\" cannot list resource \"pods\"\u001b[2J"}`)
	}))
	defer server.Close()
	config := write(t, filepath.Join(t.TempDir(), "config"), strings.Replace(twoContexts, "SERVER", server.URL, 1))
	got := run(t, "", "top", "--kubeconfig", config)
	if want := "tunnel-gateway: list the connectors: pods is forbidden: User \"u\" cannot list resource \"pods\"\\x1b[2J\n"; got.status != 1 || got.stderr != want {
		t.Errorf("status = %d, stderr = %q; want status 1 and %q", got.status, got.stderr, want)
	}
}
