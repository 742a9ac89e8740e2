package manifest

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// configuration is a TunnelConfiguration with the given spec, in flow style.
func configuration(spec string) string {
	return `apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: settings}
spec: ` + spec + "\n"
}

// TestWhatTunnelConfigurationsRefuse has a case for every rule and bound that
// we write ourselves.
func TestWhatTunnelConfigurationsRefuse(t *testing.T) {
	const (
		accountID  = "must be the ID of an account, as the Cloudflare dashboard shows it: letters and digits only"
		dataKey    = "must be a key of a Secret: letters, digits, '-', '_' and '.' only"
		tunnelID   = "must be the ID of a tunnel: a UUID in lower case, as in 0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"
		image      = "must be the reference of an image, as in docker.io/cloudflare/cloudflared:2026.8.2"
		metaKey    = " has a key that is not valid: a key is a name of up to 63 letters, digits, '-', '_' and '.', with a DNS subdomain and a slash before it where needed, as in example.com/team"
		ourKey     = " has a key under tunnelgateway.dev/ or gateway.networking.k8s.io/, which the controller sets: take it out"
		labelValue = "must be the value of a label: up to 63 letters, digits, '-', '_' and '.', with a letter or a digit at both ends"
		budget     = "podDisruptionBudget: Invalid value: podDisruptionBudget needs either minAvailable or maxUnavailable, and not both"
		share      = `must be a number that is not negative, or a percentage from "0%" to "100%"`
		duration   = "must be a positive time in whole seconds, written in hours, minutes and seconds, as in 30s or 1m30s"
		hostHeader = "must be a host, with a port where it needs one, as in internal.example.com:8443"
		serverName = "must be a host name without a port, as in internal.example.com"
		caPool     = "must be an absolute path in the connector's container, as in /etc/backend-ca/ca.crt"
		port       = "must be HTTP or HTTPS, a colon, and a port from 1 to 65535, as in HTTPS:443"
		hostname   = "must be the hostname of a listener in lower case, as in www.example.com or *.example.com"
		noTeam     = "access: Invalid value: access is required but has no teamName, without which no token can be checked: set teamName, or set required to false"
		noTags     = "access: Invalid value: access is required but has no audTags, without which no token can be checked: set the AUD tag of the Access application, or set required to false"
		teamName   = "must be the team name alone, as in example for example.cloudflareaccess.com"
		bounds     = "min is greater than max: lower min, which is 1 by default, or raise max, which is 4 by default"
		rotation   = "must be at least 24h"
		prefix     = "connector.allowedMetadataPrefixes: Invalid value: allowedMetadataPrefixes has tunnelgateway.dev, kubernetes.io, k8s.io, gateway.networking.k8s.io or a subdomain of one of them: take it out"

		gatewayFields = `"originRequest", "listenerConfigurations", "tunnel.deletionPolicy", "tunnel.existing", "connector.enabled", "connector.replicas", "connector.autoscaling", "connector.protocol", "connector.logLevel", "connector.resources", "connector.nodeSelector", "connector.tolerations", "connector.affinity", "connector.topologySpreadConstraints", "connector.podAnnotations", "connector.podLabels", "connector.gracePeriod", "connector.podDisruptionBudget", "connector.tokenRotation"`
		audTag        = "must be the AUD tag of an Access application, as the Cloudflare dashboard shows it: letters and digits only"
	)
	tests := map[string]struct {
		spec string
		want []string // without "spec." in front
	}{
		"merging mode": {"{mergingMode: Mixed}", []string{`mergingMode: Unsupported value: "Mixed": supported values: "PreferGatewayClass", "PreferGateway"`}},

		"gateway field that cannot be listed": {
			"{allowedGatewayFields: [connector.image]}",
			[]string{`allowedGatewayFields[0]: Unsupported value: "connector.image": supported values: ` + gatewayFields},
		},
		"gateway field twice": {
			"{allowedGatewayFields: [originRequest, originRequest]}",
			[]string{`allowedGatewayFields[1]: Duplicate value: "originRequest"`},
		},
		"negative limit of tunnels": {
			"{limits: {tunnelsPerNamespace: -1}}",
			[]string{"limits.tunnelsPerNamespace: Invalid value: -1: spec.limits.tunnelsPerNamespace in body should be greater than or equal to 0"},
		},
		"huge limit of tunnels": {
			"{limits: {tunnelsPerNamespace: 1001}}",
			[]string{"limits.tunnelsPerNamespace: Invalid value: 1001: spec.limits.tunnelsPerNamespace in body should be less than or equal to 1000"},
		},
		"replica bounds out of bounds": {
			"{limits: {connectorReplicas: {min: -1, max: 26}}}",
			[]string{
				"limits.connectorReplicas.max: Invalid value: 26: spec.limits.connectorReplicas.max in body should be less than or equal to 25",
				"limits.connectorReplicas.min: Invalid value: -1: spec.limits.connectorReplicas.min in body should be greater than or equal to 0",
			},
		},
		"replica bounds backwards":              {"{limits: {connectorReplicas: {min: 3, max: 2}}}", []string{"limits.connectorReplicas: Invalid value: " + bounds}},
		"smallest number above the default max": {"{limits: {connectorReplicas: {min: 5}}}", []string{"limits.connectorReplicas: Invalid value: " + bounds}},
		"greatest number below the default min": {"{limits: {connectorReplicas: {max: 0}}}", []string{"limits.connectorReplicas: Invalid value: " + bounds}},

		"account that says nothing": {"{account: {}}", []string{"account: Invalid value: account is empty: set accountID, apiTokenSecretRef or both, or leave account out"}},
		"account ID with a slash":   {"{account: {accountID: a/b}}", []string{`account.accountID: Invalid value: "a/b": ` + accountID}},
		"empty account ID":          {`{account: {accountID: ""}}`, []string{`account.accountID: Invalid value: "": ` + accountID}},
		"long account ID":           {"{account: {accountID: " + strings.Repeat("a", 65) + "}}", []string{"account.accountID: Too long: may not be more than 64 bytes"}},
		"token without a Secret":    {"{account: {apiTokenSecretRef: {}}}", []string{"account.apiTokenSecretRef.name: Required value"}},
		"token in another namespace": {
			"{account: {apiTokenSecretRef: {name: a, namespace: b}}}",
			[]string{"account.apiTokenSecretRef.namespace: Forbidden: unknown field"},
		},
		"Secret without a name": {
			`{account: {apiTokenSecretRef: {name: ""}}}`,
			[]string{`account.apiTokenSecretRef.name: Invalid value: "": spec.account.apiTokenSecretRef.name in body should be at least 1 chars long`},
		},
		"empty key of a Secret": {`{account: {apiTokenSecretRef: {name: a, key: ""}}}`, []string{`account.apiTokenSecretRef.key: Invalid value: "": ` + dataKey}},
		"key of a Secret":       {"{account: {apiTokenSecretRef: {name: a, key: b c}}}", []string{`account.apiTokenSecretRef.key: Invalid value: "b c": ` + dataKey}},

		"existing tunnel that says nothing": {
			"{tunnel: {existing: {}}}",
			[]string{"tunnel.existing: Invalid value: existing is empty: set id, or takeover in the TunnelConfiguration of a GatewayClass, or leave existing out"},
		},
		"tunnel ID that is a name": {"{tunnel: {existing: {id: mine}}}", []string{`tunnel.existing.id: Invalid value: "mine": ` + tunnelID}},
		"tunnel ID in upper case": {
			"{tunnel: {existing: {id: 0F3C1E5A-7B42-4C7E-9A53-6D1B2E8F4A90}}}",
			[]string{`tunnel.existing.id: Invalid value: "0F3C1E5A-7B42-4C7E-9A53-6D1B2E8F4A90": ` + tunnelID},
		},
		"deletion policy": {"{tunnel: {deletionPolicy: Keep}}", []string{`tunnel.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Retain"`}},

		"replicas beside autoscaling": {
			"{connector: {replicas: 2, autoscaling: {}}}",
			[]string{"connector: Invalid value: connector has both replicas and autoscaling: set replicas for a fixed number, or autoscaling, not both"},
		},
		"too many replicas":     {"{connector: {replicas: 26}}", []string{"connector.replicas: Invalid value: 26: spec.connector.replicas in body should be less than or equal to 25"}},
		"negative replicas":     {"{connector: {replicas: -1}}", []string{"connector.replicas: Invalid value: -1: spec.connector.replicas in body should be greater than or equal to 0"}},
		"autoscaling backwards": {"{connector: {autoscaling: {minReplicas: 4, maxReplicas: 3}}}", []string{"connector.autoscaling: Invalid value: autoscaling has a minReplicas above maxReplicas: lower minReplicas or raise maxReplicas"}},
		"autoscaling out of bounds": {
			"{connector: {autoscaling: {minReplicas: 0, maxReplicas: 26, targetCPUUtilizationPercentage: 0}}}",
			[]string{
				"connector.autoscaling.maxReplicas: Invalid value: 26: spec.connector.autoscaling.maxReplicas in body should be less than or equal to 25",
				"connector.autoscaling.minReplicas: Invalid value: 0: spec.connector.autoscaling.minReplicas in body should be greater than or equal to 1",
				"connector.autoscaling.targetCPUUtilizationPercentage: Invalid value: 0: spec.connector.autoscaling.targetCPUUtilizationPercentage in body should be greater than or equal to 1",
			},
		},
		"autoscaling from above to below": {
			"{connector: {autoscaling: {minReplicas: 26, maxReplicas: 0}}}",
			[]string{
				"connector.autoscaling.maxReplicas: Invalid value: 0: spec.connector.autoscaling.maxReplicas in body should be greater than or equal to 1",
				"connector.autoscaling.minReplicas: Invalid value: 26: spec.connector.autoscaling.minReplicas in body should be less than or equal to 25",
				"connector.autoscaling: Invalid value: autoscaling has a minReplicas above maxReplicas: lower minReplicas or raise maxReplicas",
			},
		},
		"resource claims":         {"{connector: {resources: {claims: [{name: a}]}}}", []string{"connector: Invalid value: connector.resources has claims, which connectors cannot have: set limits and requests only"}},
		"empty image":             {`{connector: {image: ""}}`, []string{`connector.image: Invalid value: "": ` + image}},
		"image with a space":      {"{connector: {image: a b}}", []string{`connector.image: Invalid value: "a b": ` + image}},
		"image with an empty tag": {`{connector: {image: "a:"}}`, []string{`connector.image: Invalid value: "a:": ` + image}},
		"protocol":                {"{connector: {protocol: tcp}}", []string{`connector.protocol: Unsupported value: "tcp": supported values: "auto", "http2", "quic"`}},
		"log level":               {"{connector: {logLevel: trace}}", []string{`connector.logLevel: Unsupported value: "trace": supported values: "debug", "info", "warn", "error", "fatal"`}},
		"keys of metadata": {
			"{connector: {podAnnotations: {a b: c}, podLabels: {_a: c}}}",
			[]string{"connector.podAnnotations: Invalid value: podAnnotations" + metaKey, "connector.podLabels: Invalid value: podLabels" + metaKey},
		},
		"keys of ours": {
			"{connector: {podAnnotations: {tunnelgateway.dev/a: c}, podLabels: {gateway.networking.k8s.io/gateway-name: c}}}",
			[]string{"connector.podAnnotations: Invalid value: podAnnotations" + ourKey, "connector.podLabels: Invalid value: podLabels" + ourKey},
		},
		"keys of ours, the other way": {
			"{connector: {podAnnotations: {gateway.networking.k8s.io/a: c}, podLabels: {tunnelgateway.dev/a: c}}}",
			[]string{"connector.podAnnotations: Invalid value: podAnnotations" + ourKey, "connector.podLabels: Invalid value: podLabels" + ourKey},
		},
		"value of a label":         {"{connector: {podLabels: {a: b c}}}", []string{`connector.podLabels[a]: Invalid value: "b c": ` + labelValue}},
		"long value of a label":    {"{connector: {podLabels: {a: " + strings.Repeat("b", 64) + "}}}", []string{"connector.podLabels.a: Too long: may not be more than 63 bytes"}},
		"prefix of Kubernetes":     {"{connector: {allowedMetadataPrefixes: [example.com, k8s.io]}}", []string{prefix}},
		"prefix below one of ours": {"{connector: {allowedMetadataPrefixes: [a.tunnelgateway.dev]}}", []string{prefix}},
		"prefix with a slash": {
			"{connector: {allowedMetadataPrefixes: [example.com/]}}",
			[]string{`connector.allowedMetadataPrefixes[0]: Invalid value: "example.com/": spec.connector.allowedMetadataPrefixes[0] in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`},
		},
		"rotation too often":      {"{connector: {tokenRotation: 23h59m59s}}", []string{`connector.tokenRotation: Invalid value: "23h59m59s": ` + rotation}},
		"rotation in words":       {"{connector: {tokenRotation: daily}}", []string{`connector.tokenRotation: Invalid value: "daily": ` + duration}},
		"grace period too long":   {"{connector: {gracePeriod: 3m1s}}", []string{`connector.gracePeriod: Invalid value: "3m1s": must be at most 3m, by cloudflared's limit`}},
		"grace period of nothing": {"{connector: {gracePeriod: 0s}}", []string{`connector.gracePeriod: Invalid value: "0s": ` + duration}},
		"grace period in words":   {"{connector: {gracePeriod: long}}", []string{`connector.gracePeriod: Invalid value: "long": ` + duration}},
		"empty budget":            {"{connector: {podDisruptionBudget: {}}}", []string{"connector." + budget}},
		"budget said twice":       {"{connector: {podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}}", []string{"connector." + budget}},
		"negative minAvailable":   {"{connector: {podDisruptionBudget: {minAvailable: -1}}}", []string{"connector.podDisruptionBudget.minAvailable: Invalid value: -1: " + share}},
		"minAvailable of 101%":    {"{connector: {podDisruptionBudget: {minAvailable: 101%}}}", []string{`connector.podDisruptionBudget.minAvailable: Invalid value: "101%": ` + share}},
		"negative maxUnavailable": {"{connector: {podDisruptionBudget: {maxUnavailable: -1}}}", []string{"connector.podDisruptionBudget.maxUnavailable: Invalid value: -1: " + share}},
		"maxUnavailable as text":  {`{connector: {podDisruptionBudget: {maxUnavailable: "1"}}}`, []string{`connector.podDisruptionBudget.maxUnavailable: Invalid value: "1": ` + share}},
		"spread constraint twice": {
			"{connector: {topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}, {topologyKey: a, whenUnsatisfiable: DoNotSchedule, maxSkew: 2}]}}",
			[]string{`connector.topologySpreadConstraints[1]: Duplicate value: {"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"}`},
		},

		"duration as a number": {"{originRequest: {connectTimeout: 30}}", []string{`originRequest.connectTimeout: Invalid value: "integer": spec.originRequest.connectTimeout in body must be of type string: "integer"`}},
		"durations": {
			`{originRequest: {connectTimeout: 1.5h, tlsTimeout: 1500ms, tcpKeepAlive: -1s, keepAliveTimeout: 0h0m0s}}`,
			[]string{
				`originRequest.connectTimeout: Invalid value: "1.5h": ` + duration,
				`originRequest.keepAliveTimeout: Invalid value: "0h0m0s": ` + duration,
				`originRequest.tcpKeepAlive: Invalid value: "-1s": ` + duration,
				`originRequest.tlsTimeout: Invalid value: "1500ms": ` + duration,
			},
		},
		"long duration":   {"{originRequest: {connectTimeout: 0000099999h00059m1s}}", []string{"originRequest.connectTimeout: Too long: may not be more than 18 bytes"}},
		"no connections":  {"{originRequest: {keepAliveConnections: 0}}", []string{"originRequest.keepAliveConnections: Invalid value: 0: spec.originRequest.keepAliveConnections in body should be greater than or equal to 1"}},
		"SNI and HTTP/2":  {"{originRequest: {matchSNItoHost: true, http2Origin: true}}", []string{"originRequest: Invalid value: originRequest has both matchSNItoHost and http2Origin on: cloudflared talks no HTTP/2 to a backend when it matches the SNI, so set one of them to false"}},
		"Host header":     {"{originRequest: {httpHostHeader: a b}}", []string{`originRequest.httpHostHeader: Invalid value: "a b": ` + hostHeader}},
		"server name":     {`{originRequest: {originServerName: "a:443"}}`, []string{`originRequest.originServerName: Invalid value: "a:443": ` + serverName}},
		"CA file":         {"{originRequest: {caPool: ca.crt}}", []string{`originRequest.caPool: Invalid value: "ca.crt": ` + caPool}},
		"kind of a proxy": {"{originRequest: {proxyType: http}}", []string{`originRequest.proxyType: Unsupported value: "http": supported values: "", "socks"`}},

		"listeners without a port":    {"{listenerConfigurations: [{hostname: a.example}]}", []string{"listenerConfigurations[0].protocolPort: Required value"}},
		"listeners of TCP":            {`{listenerConfigurations: [{protocolPort: "TCP:80"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "TCP:80": ` + port}},
		"protocol in lower case":      {`{listenerConfigurations: [{protocolPort: "http:80"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "http:80": ` + port}},
		"port 0":                      {`{listenerConfigurations: [{protocolPort: "HTTP:0"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "HTTP:0": ` + port}},
		"port 65536":                  {`{listenerConfigurations: [{protocolPort: "HTTP:65536"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "HTTP:65536": ` + port}},
		"port with a leading zero":    {`{listenerConfigurations: [{protocolPort: "HTTP:080"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "HTTP:080": ` + port}},
		"hostname in upper case":      {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: A.example}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "A.example": ` + hostname}},
		"hostname with a final dot":   {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: a.example.}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "a.example.": ` + hostname}},
		"hostname of a star":          {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: "*"}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "*": ` + hostname}},
		"hostname with an inner star": {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: "a.*.example"}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "a.*.example": ` + hostname}},
		"listeners twice": {
			`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: a.example}, {protocolPort: "HTTP:80"}, {protocolPort: "HTTP:80", hostname: a.example}]}`,
			[]string{`listenerConfigurations[2]: Duplicate value: {"hostname":"a.example","protocolPort":"HTTP:80"}`},
		},
		"listeners twice without a hostname": {
			`{listenerConfigurations: [{protocolPort: "HTTP:80"}, {protocolPort: "HTTP:80", hostname: ""}]}`,
			[]string{`listenerConfigurations[1]: Duplicate value: {"hostname":"","protocolPort":"HTTP:80"}`},
		},

		"access that does not say required": {
			`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {teamName: a, audTags: [b]}}]}`,
			[]string{"listenerConfigurations[0].access.required: Required value"},
		},
		"access without all":      {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true}}]}`, []string{"listenerConfigurations[0]." + noTags, "listenerConfigurations[0]." + noTeam}},
		"access without a team":   {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, audTags: [b]}}]}`, []string{"listenerConfigurations[0]." + noTeam}},
		"access without tags":     {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a}}]}`, []string{"listenerConfigurations[0]." + noTags}},
		"access with no tag":      {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a, audTags: []}}]}`, []string{"listenerConfigurations[0]." + noTags}},
		"access of a domain":      {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a.example, audTags: [b]}}]}`, []string{`listenerConfigurations[0].access.teamName: Invalid value: "a.example": ` + teamName}},
		"access of an empty team": {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: "", audTags: [b]}}]}`, []string{`listenerConfigurations[0].access.teamName: Invalid value: "": ` + teamName}},
		"access of an empty tag":  {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a, audTags: [""]}}]}`, []string{`listenerConfigurations[0].access.audTags[0]: Invalid value: "": ` + audTag}},
		"access with a tag twice": {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a, audTags: [b, b]}}]}`, []string{`listenerConfigurations[0].access.audTags[1]: Duplicate value: "b"`}},

		"unknown field": {"{connector: {replica: 2}}", []string{"connector.replica: Forbidden: unknown field"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := mistakes(t, configuration(test.spec))
			for i, line := range got {
				got[i] = strings.TrimPrefix(line, "in.yaml: document 1: TunnelConfiguration default/settings: spec.")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhatTunnelConfigurationsAccept has what lies just within a bound.
func TestWhatTunnelConfigurationsAccept(t *testing.T) {
	for name, spec := range map[string]string{
		"nothing":              "{}",
		"account only":         "{account: {accountID: a}}",
		"token only":           "{account: {apiTokenSecretRef: {name: a}}}",
		"no gateway fields":    "{allowedGatewayFields: []}",
		"takeover alone":       "{tunnel: {existing: {takeover: true}}}",
		"limits of nothing":    "{limits: {tunnelsPerNamespace: 0, connectorReplicas: {min: 0, max: 0}}}",
		"prefix like ours":     "{connector: {allowedMetadataPrefixes: [notk8s.io, example.com]}}",
		"shortest rotation":    "{connector: {tokenRotation: 24h}}",
		"image without a tag":  "{connector: {image: cloudflare/cloudflared}}",
		"image of a registry":  `{connector: {image: "localhost:5000/a/b__c:v1"}}`,
		"autoscaling as it is": "{connector: {autoscaling: {}}}",
		"empty budget numbers": "{connector: {podDisruptionBudget: {maxUnavailable: 0}}}",
		"all of them":          "{connector: {podDisruptionBudget: {minAvailable: 100%}}}",
		"SNI without HTTP/2":   "{originRequest: {matchSNItoHost: true, http2Origin: false}}",
		"HTTP/2 without SNI":   "{originRequest: {matchSNItoHost: false, http2Origin: true}}",
		"ports":                `{listenerConfigurations: [{protocolPort: "HTTP:1"}, {protocolPort: "HTTP:59999"}, {protocolPort: "HTTPS:65499"}, {protocolPort: "HTTPS:65529"}, {protocolPort: "HTTPS:65535"}]}`,
		"access switched off":  `{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: false, teamName: a}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			parseOne[*v1alpha1.TunnelConfiguration](t, configuration(spec))
		})
	}
}

// TestTunnelConfigurationsKeepEveryField reads objects that set every field
// between them, and writes them again.
func TestTunnelConfigurationsKeepEveryField(t *testing.T) {
	data, err := os.ReadFile("testdata/tunnelconfigurations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(data), "\n---\n")
	set := map[string]bool{}
	for i, object := range parse(t, string(data)).Objects {
		configuration := object.(*v1alpha1.TunnelConfiguration)
		setFields(reflect.ValueOf(configuration.Spec), "spec", set)
		written, err := yaml.Marshal(configuration)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(generic(t, documents[i]), generic(t, string(written))); diff != "" {
			t.Error(diff)
		}
	}
	for _, path := range fields(reflect.TypeFor[v1alpha1.TunnelConfigurationSpec](), "spec") {
		if !set[path] {
			t.Errorf("no object sets %s", path)
		}
	}
}

// generic returns what a document says, whatever its layout.
func generic(t *testing.T, document string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// fields returns the paths of a type's fields and of theirs, as far as our own
// types go.
func fields(typ reflect.Type, path string) []string {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	paths := []string{path}
	if isOurs(typ) {
		for i := range typ.NumField() {
			paths = append(paths, fields(typ.Field(i).Type, path+"."+typ.Field(i).Name)...)
		}
	}
	return paths
}

// setFields marks the paths, as fields returns them, at which a value is set.
func setFields(value reflect.Value, path string, set map[string]bool) {
	if value.IsZero() {
		return
	}
	set[path] = true
	switch {
	case value.Kind() == reflect.Pointer:
		if isOurs(value.Type().Elem()) {
			setFields(value.Elem(), path, set)
		}
	case value.Kind() == reflect.Slice:
		for i := range value.Len() {
			setFields(value.Index(i), path, set)
		}
	case isOurs(value.Type()):
		for i := range value.NumField() {
			setFields(value.Field(i), path+"."+value.Type().Field(i).Name, set)
		}
	}
}

func isOurs(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && typ.PkgPath() == reflect.TypeFor[v1alpha1.TunnelConfiguration]().PkgPath()
}

// TestTunnelConfigurationInAList holds the place in the error of an item.
func TestTunnelConfigurationInAList(t *testing.T) {
	got := mistakes(t, `apiVersion: v1
kind: List
items:
- {apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: good}}
- {apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: bad, namespace: team}, spec: {connector: {replicas: 30}}}
`)
	want := []string{"in.yaml: document 1: items[1]: TunnelConfiguration team/bad: spec.connector.replicas: Invalid value: 30: spec.connector.replicas in body should be less than or equal to 25"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
