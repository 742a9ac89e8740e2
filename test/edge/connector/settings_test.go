package main

import (
	"cmp"
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// deployedArguments is the command line that the controller starts connectors with.
const deployedArguments = "tunnel --no-autoupdate --metrics :2000 --protocol auto --edge-ip-version auto --loglevel info --grace-period 30s run"

// encodeToken returns the tunnel token for the credentials, which are JSON.
func encodeToken(credentials string) string {
	return base64.StdEncoding.EncodeToString([]byte(credentials))
}

// environment returns a valid environment with changes.
func environment(changes map[string]string) func(string) string {
	return func(name string) string {
		if value, ok := changes[name]; ok {
			return value
		}
		return map[string]string{
			"TUNNEL_TOKEN": encodeToken(`{"a":"account","t":"tunnel","s":"hunter2"}`),
			"TUNNEL_EDGE":  "http://127.0.0.1:1",
		}[name]
	}
}

// probeArguments is the command line with which probes ask connectors whose metrics are
// on the loopback address.
const probeArguments = "tunnel --metrics 127.0.0.1:2000 ready"

func TestOnlyTheDeployedCommandLineIsAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		arguments   string
		environment map[string]string
		metrics     string
		host        string
		grace       time.Duration // 0 selects 30 seconds
		wantErr     string
	}{
		"deployed command line": {arguments: deployedArguments, metrics: ":2000"},
		"METRICS_PORT":          {arguments: deployedArguments, environment: map[string]string{"METRICS_PORT": "1"}, metrics: "127.0.0.1:1"},
		"METRICS_HOST":          {arguments: deployedArguments, environment: map[string]string{"METRICS_HOST": "::1", "METRICS_PORT": "1"}, metrics: "[::1]:1"},
		"metrics on loopback": {
			arguments: strings.Replace(deployedArguments, ":2000", "127.0.0.1:2000", 1), metrics: "127.0.0.1:2000",
		},
		"a pod with a host name": {
			arguments: deployedArguments, environment: map[string]string{"HOSTNAME": "pod"}, metrics: ":2000", host: "pod",
		},
		"a grace period":          {arguments: strings.Replace(deployedArguments, "30s", "5s", 1), metrics: ":2000", grace: 5 * time.Second},
		"without a grace period":  {arguments: strings.Replace(deployedArguments, "--grace-period 30s", "", 1), metrics: ":2000"},
		"a probe without a token": {arguments: probeArguments, environment: map[string]string{"TUNNEL_TOKEN": ""}, metrics: "127.0.0.1:2000"},
		"a probe with METRICS_PORT": {
			arguments: probeArguments, environment: map[string]string{"METRICS_PORT": "1"}, metrics: "127.0.0.1:1",
		},
		"a probe without metrics": {arguments: "tunnel ready", wantErr: "--metrics"},
		"HTTP/2":                  {arguments: strings.Replace(deployedArguments, "auto ", "http2 ", 1), metrics: ":2000"},
		"no command":              {arguments: "", wantErr: "must be tunnel"},
		"another command":         {arguments: "access " + deployedArguments, wantErr: "must be tunnel"},
		"no run":                  {arguments: strings.TrimSuffix(deployedArguments, " run"), wantErr: "run"},
		"an argument after run":   {arguments: deployedArguments + " name", wantErr: "run"},
		"a flag after run":        {arguments: deployedArguments + " --no-autoupdate", wantErr: "run"},
		"an unknown flag":         {arguments: "tunnel --region us run", wantErr: "-region"},
		"an unknown IP version":   {arguments: strings.Replace(deployedArguments, "version auto", "version Auto", 1), wantErr: "-edge-ip-version"},
		"an unknown protocol":     {arguments: strings.Replace(deployedArguments, "auto ", "tcp ", 1), wantErr: "-protocol"},
		"an unknown level":        {arguments: strings.Replace(deployedArguments, "info", "trace", 1), wantErr: "-loglevel"},
		"grace without a unit":    {arguments: strings.Replace(deployedArguments, "30s", "30", 1), wantErr: "-grace-period"},
		"grace above the limit":   {arguments: strings.Replace(deployedArguments, "30s", "181s", 1), wantErr: "-grace-period"},
		"no metrics":              {arguments: "tunnel run", wantErr: "--metrics"},
		"metrics without a port":  {arguments: "tunnel --metrics 0.0.0.0 run", wantErr: "--metrics"},
		"no token":                {arguments: deployedArguments, environment: map[string]string{"TUNNEL_TOKEN": ""}, wantErr: "TUNNEL_TOKEN"},
		"a malformed token":       {arguments: deployedArguments, environment: map[string]string{"TUNNEL_TOKEN": "hunter2"}, wantErr: "TUNNEL_TOKEN"},
		"a token with invalid JSON": {
			arguments: deployedArguments, environment: map[string]string{"TUNNEL_TOKEN": encodeToken("{\"s\":\"hunter2\n\"}")}, wantErr: "TUNNEL_TOKEN",
		},
		"an incomplete token": {arguments: deployedArguments, environment: map[string]string{"TUNNEL_TOKEN": encodeToken(`{"s":"hunter2"}`)}, wantErr: "TUNNEL_TOKEN"},
		"no edge":             {arguments: deployedArguments, environment: map[string]string{"TUNNEL_EDGE": ""}, wantErr: "TUNNEL_EDGE"},
		"an edge without a scheme": {
			arguments: deployedArguments, environment: map[string]string{"TUNNEL_EDGE": "127.0.0.1:1"}, wantErr: "TUNNEL_EDGE",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse(strings.Fields(test.arguments), environment(test.environment))
			switch {
			case test.wantErr == "" && err != nil:
				t.Fatal(err)
			case test.wantErr == "":
				if s.metrics != test.metrics || s.host != test.host || s.grace != cmp.Or(test.grace, 30*time.Second) {
					t.Errorf("settings %+v, want those of %+v", s, test)
				}
			case err == nil || !strings.Contains(err.Error(), test.wantErr):
				t.Errorf("error %v, want an error that contains %q", err, test.wantErr)
			case strings.Contains(err.Error(), "hunter2"):
				t.Errorf("error %v contains the token", err)
			}
		})
	}
}
