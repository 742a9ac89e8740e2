package main

import (
	"encoding/base64"
	"strings"
	"testing"
)

// deployed is the command line that the controller gives connectors.
const deployed = "tunnel --no-autoupdate --metrics 0.0.0.0:2000 --protocol auto --loglevel info --grace-period 30s run"

func encoded(credentials string) string {
	return base64.StdEncoding.EncodeToString([]byte(credentials))
}

// environment is one that is accepted, with changes.
func environment(changes map[string]string) func(string) string {
	return func(name string) string {
		if value, ok := changes[name]; ok {
			return value
		}
		return map[string]string{
			"TUNNEL_TOKEN": encoded(`{"a":"account","t":"tunnel","s":"hunter2"}`),
			"TUNNEL_EDGE":  "http://127.0.0.1:1",
		}[name]
	}
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		arguments   string
		environment map[string]string
		metrics     string
		wantErr     string
	}{
		"as deployed":            {arguments: deployed, metrics: "0.0.0.0:2000"},
		"another port":           {arguments: deployed, environment: map[string]string{"METRICS_PORT": "1"}, metrics: "127.0.0.1:1"},
		"HTTP/2":                 {arguments: strings.Replace(deployed, "auto ", "http2 ", 1), metrics: "0.0.0.0:2000"},
		"no command":             {arguments: "", wantErr: "must be tunnel"},
		"another command":        {arguments: "access " + deployed, wantErr: "must be tunnel"},
		"no run":                 {arguments: strings.TrimSuffix(deployed, " run"), wantErr: "run"},
		"something after run":    {arguments: deployed + " name", wantErr: "run"},
		"a flag after run":       {arguments: deployed + " --no-autoupdate", wantErr: "run"},
		"an unknown flag":        {arguments: "tunnel --edge-ip-version 4 run", wantErr: "-edge-ip-version"},
		"an unknown protocol":    {arguments: strings.Replace(deployed, "auto ", "tcp ", 1), wantErr: "-protocol"},
		"an unknown level":       {arguments: strings.Replace(deployed, "info", "trace", 1), wantErr: "-loglevel"},
		"grace without a unit":   {arguments: strings.Replace(deployed, "30s", "30", 1), wantErr: "-grace-period"},
		"grace above the limit":  {arguments: strings.Replace(deployed, "30s", "181s", 1), wantErr: "-grace-period"},
		"no metrics":             {arguments: "tunnel run", wantErr: "--metrics"},
		"metrics without a port": {arguments: "tunnel --metrics 0.0.0.0 run", wantErr: "--metrics"},
		"no token":               {arguments: deployed, environment: map[string]string{"TUNNEL_TOKEN": ""}, wantErr: "TUNNEL_TOKEN"},
		"a token that is none":   {arguments: deployed, environment: map[string]string{"TUNNEL_TOKEN": "hunter2"}, wantErr: "TUNNEL_TOKEN"},
		"a token with a newline within JSON": {
			arguments: deployed, environment: map[string]string{"TUNNEL_TOKEN": encoded("{\"s\":\"hunter2\n\"}")}, wantErr: "TUNNEL_TOKEN",
		},
		"half a token": {arguments: deployed, environment: map[string]string{"TUNNEL_TOKEN": encoded(`{"s":"hunter2"}`)}, wantErr: "TUNNEL_TOKEN"},
		"no edge":      {arguments: deployed, environment: map[string]string{"TUNNEL_EDGE": ""}, wantErr: "TUNNEL_EDGE"},
		"an edge without a scheme": {
			arguments: deployed, environment: map[string]string{"TUNNEL_EDGE": "127.0.0.1:1"}, wantErr: "TUNNEL_EDGE",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse(strings.Fields(test.arguments), environment(test.environment))
			switch {
			case test.wantErr == "" && err != nil:
				t.Fatal(err)
			case test.wantErr == "":
				if s.metrics != test.metrics {
					t.Errorf("metrics on %s, want %s", s.metrics, test.metrics)
				}
			case err == nil || !strings.Contains(err.Error(), test.wantErr):
				t.Errorf("error %v, want one with %q", err, test.wantErr)
			case strings.Contains(err.Error(), "hunter2"):
				t.Errorf("error %v tells the token", err)
			}
		})
	}
}
