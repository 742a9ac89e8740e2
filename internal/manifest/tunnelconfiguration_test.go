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

// configuration returns a TunnelConfiguration with the given spec, in flow style.
func configuration(spec string) string {
	return `apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: settings}
spec: ` + spec + "\n"
}

// TestInvalidTunnelConfigurationsAreRejected has an invalid object for every rule and
// bound in the TunnelConfiguration schema.
func TestInvalidTunnelConfigurationsAreRejected(t *testing.T) {
	const (
		accountID   = "must be the ID of an account, as the Cloudflare dashboard shows it: letters and digits only"
		dataKey     = "must be a key of a Secret: letters, digits, '-', '_' and '.' only"
		tunnelID    = "must be a tunnel ID: a UUID in lower case, such as 0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"
		image       = "must be an image reference, such as docker.io/cloudflare/cloudflared:2026.8.2"
		metaKey     = " has an invalid key: a key is a name of up to 63 letters, digits, '-', '_' and '.', with an optional prefix of a DNS subdomain and a slash, such as example.com/team"
		reservedKey = " has a key with the prefix tunnelgateway.dev/ or gateway.networking.k8s.io/, which only the controller sets: remove it"
		labelValue  = "must be a label value: up to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or a digit"
		budget      = "podDisruptionBudget: Invalid value: podDisruptionBudget must have either minAvailable or maxUnavailable, but not both"
		share       = `must be a non-negative number, or a percentage from "0%" to "100%"`
		duration    = "must be a positive number of whole seconds, written in hours, minutes and seconds, such as 30s or 1m30s"
		hostHeader  = "must be a host with an optional port, such as internal.example.com:8443"
		serverName  = "must be a hostname without a port, such as internal.example.com"
		caPool      = "must be an absolute path in the connector's container, such as /etc/backend-ca/ca.crt"
		port        = "must be HTTP or HTTPS, a colon, and a port from 1 to 65535, such as HTTPS:443, or * for every listener"
		hostname    = "must be the hostname of a listener in lower case, such as www.example.com or *.example.com"
		noTeam      = "access: Invalid value: access is required but has neither policies nor teamName, so tokens cannot be validated: set policies, set teamName and audTags, or set required to false"
		noTags      = "access: Invalid value: access is required but has neither policies nor audTags, so tokens cannot be validated: set policies, set the AUD tag of the Access application, or set required to false"
		teamName    = "must be the team name only, such as example for example.cloudflareaccess.com"
		bounds      = "min is greater than max: lower min (default 1) or raise max (default 4)"
		rotation    = "must be at least 24h"
		collector   = "must be a URL with the scheme http or https and a host, such as http://collector.observability.svc:4317"
		prefix      = "connector.allowedMetadataPrefixes: Invalid value: allowedMetadataPrefixes has tunnelgateway.dev, kubernetes.io, k8s.io, gateway.networking.k8s.io or a subdomain of one of them: remove it"

		gatewayFields = `"originRequest", "listenerConfigurations", "tunnel.deletionPolicy", "tunnel.existing", "connector.enabled", "connector.replicas", "connector.autoscaling", "connector.protocol", "connector.edgeIPVersion", "connector.logLevel", "connector.resources", "connector.nodeSelector", "connector.tolerations", "connector.affinity", "connector.topologySpreadConstraints", "connector.podAnnotations", "connector.podLabels", "connector.readyDelay", "connector.gracePeriod", "connector.podDisruptionBudget", "connector.tokenRotation"`
		audTag        = "must be the AUD tag of an Access application, as the Cloudflare dashboard shows it: letters and digits only"
	)
	tests := map[string]struct {
		spec string
		want []string // without the prefix "spec."
	}{
		"unsupported merging mode": {"{mergingMode: Mixed}", []string{`mergingMode: Unsupported value: "Mixed": supported values: "PreferGatewayClass", "PreferGateway"`}},

		"field that a Gateway can never set": {
			"{allowedGatewayFields: [connector.image]}",
			[]string{`allowedGatewayFields[0]: Unsupported value: "connector.image": supported values: ` + gatewayFields},
		},
		"duplicate Gateway field": {
			"{allowedGatewayFields: [originRequest, originRequest]}",
			[]string{`allowedGatewayFields[1]: Duplicate value: "originRequest"`},
		},
		"negative tunnel limit": {
			"{limits: {tunnelsPerNamespace: -1}}",
			[]string{"limits.tunnelsPerNamespace: Invalid value: -1: spec.limits.tunnelsPerNamespace in body should be greater than or equal to 0"},
		},
		"tunnel limit above the maximum": {
			"{limits: {tunnelsPerNamespace: 1001}}",
			[]string{"limits.tunnelsPerNamespace: Invalid value: 1001: spec.limits.tunnelsPerNamespace in body should be less than or equal to 1000"},
		},
		"tenant label that is not a key": {
			`{limits: {tenantLabel: "example.com/a/b"}}`,
			[]string{`limits.tenantLabel: Invalid value: "example.com/a/b": must be the key of a label, such as example.com/tenant`},
		},
		"collector with a path": {
			`{connector: {envoy: {tracing: {endpoint: "http://collector:4317/v1/traces"}}}}`,
			[]string{`connector.envoy.tracing.endpoint: Invalid value: "http://collector:4317/v1/traces": ` + collector},
		},
		"collector with a port that does not exist": {
			`{connector: {envoy: {tracing: {endpoint: "http://collector:65536"}}}}`,
			[]string{`connector.envoy.tracing.endpoint: Invalid value: "http://collector:65536": ` + collector},
		},
		"more traces than requests": {
			`{connector: {envoy: {tracing: {endpoint: "http://collector", samplingPercent: 101, parent: Maybe}}}}`,
			[]string{
				`connector.envoy.tracing.parent: Unsupported value: "Maybe": supported values: "Ignored", "Trusted"`,
				"connector.envoy.tracing.samplingPercent: Invalid value: 101: spec.connector.envoy.tracing.samplingPercent in body should be less than or equal to 100",
			},
		},
		"no rules and no writes": {
			"{limits: {rulesPerTunnel: 0, configurationUpdates: {burst: 0, interval: 0s}}}",
			[]string{
				"limits.configurationUpdates.burst: Invalid value: 0: spec.limits.configurationUpdates.burst in body should be greater than or equal to 1",
				`limits.configurationUpdates.interval: Invalid value: "0s": must be a positive number of whole seconds, written in hours, minutes and seconds, such as 30s or 1m30s`,
				"limits.rulesPerTunnel: Invalid value: 0: spec.limits.rulesPerTunnel in body should be greater than or equal to 1",
			},
		},
		"replica bounds out of range": {
			"{limits: {connectorReplicas: {min: -1, max: 26}}}",
			[]string{
				"limits.connectorReplicas.max: Invalid value: 26: spec.limits.connectorReplicas.max in body should be less than or equal to 25",
				"limits.connectorReplicas.min: Invalid value: -1: spec.limits.connectorReplicas.min in body should be greater than or equal to 0",
			},
		},
		"minimum above the maximum":         {"{limits: {connectorReplicas: {min: 3, max: 2}}}", []string{"limits.connectorReplicas: Invalid value: " + bounds}},
		"minimum above the default maximum": {"{limits: {connectorReplicas: {min: 5}}}", []string{"limits.connectorReplicas: Invalid value: " + bounds}},
		"maximum below the default minimum": {"{limits: {connectorReplicas: {max: 0}}}", []string{"limits.connectorReplicas: Invalid value: " + bounds}},

		"empty account":           {"{account: {}}", []string{"account: Invalid value: account is empty: set accountID, apiTokenSecretRef or both, or remove account"}},
		"account ID with a slash": {"{account: {accountID: a/b}}", []string{`account.accountID: Invalid value: "a/b": ` + accountID}},
		"empty account ID":        {`{account: {accountID: ""}}`, []string{`account.accountID: Invalid value: "": ` + accountID}},
		"long account ID":         {"{account: {accountID: " + strings.Repeat("a", 65) + "}}", []string{"account.accountID: Too long: may not be more than 64 bytes"}},
		"token without a Secret":  {"{account: {apiTokenSecretRef: {}}}", []string{"account.apiTokenSecretRef.name: Required value"}},
		"token in another namespace": {
			"{account: {apiTokenSecretRef: {name: a, namespace: b}}}",
			[]string{"account.apiTokenSecretRef.namespace: Forbidden: unknown field"},
		},
		"Secret without a name": {
			`{account: {apiTokenSecretRef: {name: ""}}}`,
			[]string{`account.apiTokenSecretRef.name: Invalid value: "": spec.account.apiTokenSecretRef.name in body should be at least 1 chars long`},
		},
		"empty Secret key":        {`{account: {apiTokenSecretRef: {name: a, key: ""}}}`, []string{`account.apiTokenSecretRef.key: Invalid value: "": ` + dataKey}},
		"Secret key with a space": {"{account: {apiTokenSecretRef: {name: a, key: b c}}}", []string{`account.apiTokenSecretRef.key: Invalid value: "b c": ` + dataKey}},

		"empty existing tunnel": {
			"{tunnel: {existing: {}}}",
			[]string{"tunnel.existing: Invalid value: existing is empty: set id, or takeover in the TunnelConfiguration of a GatewayClass, or remove existing"},
		},
		"tunnel ID that is a name": {"{tunnel: {existing: {id: mine}}}", []string{`tunnel.existing.id: Invalid value: "mine": ` + tunnelID}},
		"tunnel ID in upper case": {
			"{tunnel: {existing: {id: 0F3C1E5A-7B42-4C7E-9A53-6D1B2E8F4A90}}}",
			[]string{`tunnel.existing.id: Invalid value: "0F3C1E5A-7B42-4C7E-9A53-6D1B2E8F4A90": ` + tunnelID},
		},
		"unsupported deletion policy": {"{tunnel: {deletionPolicy: Keep}}", []string{`tunnel.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Retain"`}},

		"replicas and autoscaling": {
			"{connector: {replicas: 2, autoscaling: {}}}",
			[]string{"connector: Invalid value: connector has both replicas and autoscaling: set only one of them"},
		},
		"too many replicas":             {"{connector: {replicas: 26}}", []string{"connector.replicas: Invalid value: 26: spec.connector.replicas in body should be less than or equal to 25"}},
		"negative replicas":             {"{connector: {replicas: -1}}", []string{"connector.replicas: Invalid value: -1: spec.connector.replicas in body should be greater than or equal to 0"}},
		"minReplicas above maxReplicas": {"{connector: {autoscaling: {minReplicas: 4, maxReplicas: 3}}}", []string{"connector.autoscaling: Invalid value: autoscaling.minReplicas is greater than maxReplicas: lower minReplicas or raise maxReplicas"}},
		"autoscaling out of range": {
			"{connector: {autoscaling: {minReplicas: 0, maxReplicas: 26, targetCPUUtilizationPercentage: 0}}}",
			[]string{
				"connector.autoscaling.maxReplicas: Invalid value: 26: spec.connector.autoscaling.maxReplicas in body should be less than or equal to 25",
				"connector.autoscaling.minReplicas: Invalid value: 0: spec.connector.autoscaling.minReplicas in body should be greater than or equal to 1",
				"connector.autoscaling.targetCPUUtilizationPercentage: Invalid value: 0: spec.connector.autoscaling.targetCPUUtilizationPercentage in body should be greater than or equal to 1",
			},
		},
		"minReplicas above and maxReplicas below the range": {
			"{connector: {autoscaling: {minReplicas: 26, maxReplicas: 0}}}",
			[]string{
				"connector.autoscaling.maxReplicas: Invalid value: 0: spec.connector.autoscaling.maxReplicas in body should be greater than or equal to 1",
				"connector.autoscaling.minReplicas: Invalid value: 26: spec.connector.autoscaling.minReplicas in body should be less than or equal to 25",
				"connector.autoscaling: Invalid value: autoscaling.minReplicas is greater than maxReplicas: lower minReplicas or raise maxReplicas",
			},
		},
		"resource claims":             {"{connector: {resources: {claims: [{name: a}]}}}", []string{"connector: Invalid value: connector.resources has claims, which are not supported: set only limits and requests"}},
		"empty image":                 {`{connector: {image: ""}}`, []string{`connector.image: Invalid value: "": ` + image}},
		"image with a space":          {"{connector: {image: a b}}", []string{`connector.image: Invalid value: "a b": ` + image}},
		"image with an empty tag":     {`{connector: {image: "a:"}}`, []string{`connector.image: Invalid value: "a:": ` + image}},
		"image of Envoy with a space": {"{connector: {envoy: {image: a b}}}", []string{`connector.envoy.image: Invalid value: "a b": must be an image reference, such as docker.io/envoyproxy/envoy:distroless-v1.40.0`}},
		"resource claims of Envoy":    {"{connector: {envoy: {resources: {claims: [{name: a}]}}}}", []string{"connector.envoy: Invalid value: connector.envoy.resources has claims, which are not supported: set only limits and requests"}},
		"no threads of Envoy":         {"{connector: {envoy: {concurrency: 0}}}", []string{"connector.envoy.concurrency: Invalid value: 0: spec.connector.envoy.concurrency in body should be greater than or equal to 1"}},
		"no outlier detection":        {"{connector: {envoy: {outlierDetection: Never}}}", []string{`connector.envoy.outlierDetection: Unsupported value: "Never": supported values: "Enabled", "Disabled"`}},
		"no connections":              {"{connector: {envoy: {circuitBreakers: {connections: 0}}}}", []string{"connector.envoy.circuitBreakers.connections: Invalid value: 0: spec.connector.envoy.circuitBreakers.connections in body should be greater than or equal to 1"}},
		"no pending requests":         {"{connector: {envoy: {circuitBreakers: {pendingRequests: 0}}}}", []string{"connector.envoy.circuitBreakers.pendingRequests: Invalid value: 0: spec.connector.envoy.circuitBreakers.pendingRequests in body should be greater than or equal to 1"}},
		"no requests":                 {"{connector: {envoy: {circuitBreakers: {requests: 0}}}}", []string{"connector.envoy.circuitBreakers.requests: Invalid value: 0: spec.connector.envoy.circuitBreakers.requests in body should be greater than or equal to 1"}},
		"too many threads of Envoy":   {"{connector: {envoy: {concurrency: 65}}}", []string{"connector.envoy.concurrency: Invalid value: 65: spec.connector.envoy.concurrency in body should be less than or equal to 64"}},
		"unsupported protocol":        {"{connector: {protocol: tcp}}", []string{`connector.protocol: Unsupported value: "tcp": supported values: "auto", "http2", "quic"`}},
		"unsupported log level":       {"{connector: {logLevel: trace}}", []string{`connector.logLevel: Unsupported value: "trace": supported values: "debug", "info", "warn", "error", "fatal"`}},
		"unsupported metrics":         {"{connector: {metrics: None}}", []string{`connector.metrics: Unsupported value: "None": supported values: "Pod", "Loopback"`}},
		"metrics peer with metrics on loopback": {
			"{connector: {metrics: Loopback, metricsFrom: [{podSelector: {}}]}}",
			[]string{"connector: Invalid value: connector has metricsFrom, but no pod can connect to the metrics port if metrics is Loopback: remove metricsFrom, or set metrics to Pod"},
		},
		"metrics peer without a selector": {
			"{connector: {metricsFrom: [{podSelector: {}}, {}]}}",
			[]string{"connector.metricsFrom[1]: Invalid value: an entry of metricsFrom is empty: set namespaceSelector, podSelector or both, or remove the entry"},
		},
		"metrics peer with an unknown field": {
			"{connector: {metricsFrom: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}}",
			[]string{"connector.metricsFrom[0].ipBlock: Forbidden: unknown field"},
		},
		"invalid metadata keys": {
			"{connector: {podAnnotations: {a b: c}, podLabels: {_a: c}}}",
			[]string{"connector.podAnnotations: Invalid value: podAnnotations" + metaKey, "connector.podLabels: Invalid value: podLabels" + metaKey},
		},
		"reserved metadata keys": {
			"{connector: {podAnnotations: {tunnelgateway.dev/a: c}, podLabels: {gateway.networking.k8s.io/gateway-name: c}}}",
			[]string{"connector.podAnnotations: Invalid value: podAnnotations" + reservedKey, "connector.podLabels: Invalid value: podLabels" + reservedKey},
		},
		"reserved metadata keys, swapped": {
			"{connector: {podAnnotations: {gateway.networking.k8s.io/a: c}, podLabels: {tunnelgateway.dev/a: c}}}",
			[]string{"connector.podAnnotations: Invalid value: podAnnotations" + reservedKey, "connector.podLabels: Invalid value: podLabels" + reservedKey},
		},
		"invalid label value":            {"{connector: {podLabels: {a: b c}}}", []string{`connector.podLabels[a]: Invalid value: "b c": ` + labelValue}},
		"long label value":               {"{connector: {podLabels: {a: " + strings.Repeat("b", 64) + "}}}", []string{"connector.podLabels.a: Too long: may not be more than 63 bytes"}},
		"Kubernetes prefix":              {"{connector: {allowedMetadataPrefixes: [example.com, k8s.io]}}", []string{prefix}},
		"subdomain of a reserved prefix": {"{connector: {allowedMetadataPrefixes: [a.tunnelgateway.dev]}}", []string{prefix}},
		"prefix with a slash": {
			"{connector: {allowedMetadataPrefixes: [example.com/]}}",
			[]string{`connector.allowedMetadataPrefixes[0]: Invalid value: "example.com/": must be a DNS name in lower case, such as web or shop.example.com`},
		},
		"token rotation below the minimum":      {"{connector: {tokenRotation: 23h59m59s}}", []string{`connector.tokenRotation: Invalid value: "23h59m59s": ` + rotation}},
		"token rotation that is not a duration": {"{connector: {tokenRotation: daily}}", []string{`connector.tokenRotation: Invalid value: "daily": ` + duration}},
		"unsupported version of IP addresses":   {"{connector: {edgeIPVersion: auto}}", []string{`connector.edgeIPVersion: Unsupported value: "auto": supported values: "Auto", "4", "6"`}},
		"ready delay above the maximum":         {"{connector: {readyDelay: 2m1s}}", []string{`connector.readyDelay: Invalid value: "2m1s": must be at most 2m`}},
		"ready delay that is not a duration":    {"{connector: {readyDelay: long}}", []string{`connector.readyDelay: Invalid value: "long": must be a number of whole seconds, written in hours, minutes and seconds, such as 0s, 15s or 1m30s`}},
		"grace period above the maximum":        {"{connector: {gracePeriod: 3m1s}}", []string{`connector.gracePeriod: Invalid value: "3m1s": must be at most 3m, which is the limit of cloudflared`}},
		"grace period of zero":                  {"{connector: {gracePeriod: 0s}}", []string{`connector.gracePeriod: Invalid value: "0s": ` + duration}},
		"grace period that is not a duration":   {"{connector: {gracePeriod: long}}", []string{`connector.gracePeriod: Invalid value: "long": ` + duration}},
		"empty disruption budget":               {"{connector: {podDisruptionBudget: {}}}", []string{"connector." + budget}},
		"disruption budget with both fields":    {"{connector: {podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}}", []string{"connector." + budget}},
		"negative minAvailable":                 {"{connector: {podDisruptionBudget: {minAvailable: -1}}}", []string{"connector.podDisruptionBudget.minAvailable: Invalid value: -1: " + share}},
		"minAvailable of 101%":                  {"{connector: {podDisruptionBudget: {minAvailable: 101%}}}", []string{`connector.podDisruptionBudget.minAvailable: Invalid value: "101%": ` + share}},
		"negative maxUnavailable":               {"{connector: {podDisruptionBudget: {maxUnavailable: -1}}}", []string{"connector.podDisruptionBudget.maxUnavailable: Invalid value: -1: " + share}},
		"maxUnavailable as a string":            {`{connector: {podDisruptionBudget: {maxUnavailable: "1"}}}`, []string{`connector.podDisruptionBudget.maxUnavailable: Invalid value: "1": ` + share}},
		"duplicate spread constraint": {
			"{connector: {topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}, {topologyKey: a, whenUnsatisfiable: DoNotSchedule, maxSkew: 2}]}}",
			[]string{`connector.topologySpreadConstraints[1]: Duplicate value: {"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"}`},
		},

		"duration as a number": {"{originRequest: {connectTimeout: 30}}", []string{`originRequest.connectTimeout: Invalid value: must be a string, but YAML reads the value on line 4 as a number; if the value is correct, write it in quotes`}},
		"invalid durations": {
			`{originRequest: {connectTimeout: 1.5h, tlsTimeout: 1500ms, tcpKeepAlive: -1s, keepAliveTimeout: 0h0m0s}}`,
			[]string{
				`originRequest.connectTimeout: Invalid value: "1.5h": ` + duration,
				`originRequest.keepAliveTimeout: Invalid value: "0h0m0s": ` + duration,
				`originRequest.tcpKeepAlive: Invalid value: "-1s": ` + duration,
				`originRequest.tlsTimeout: Invalid value: "1500ms": ` + duration,
			},
		},
		"long duration":                  {"{originRequest: {connectTimeout: 0000099999h00059m1s}}", []string{"originRequest.connectTimeout: Too long: may not be more than 18 bytes"}},
		"no keep-alive connections":      {"{originRequest: {keepAliveConnections: 0}}", []string{"originRequest.keepAliveConnections: Invalid value: 0: spec.originRequest.keepAliveConnections in body should be greater than or equal to 1"}},
		"matchSNItoHost and http2Origin": {"{originRequest: {matchSNItoHost: true, http2Origin: true}}", []string{"originRequest: Invalid value: originRequest has both matchSNItoHost and http2Origin: cloudflared cannot use HTTP/2 to the backend with matchSNItoHost, so set one of them to false"}},
		"invalid Host header":            {"{originRequest: {httpHostHeader: a b}}", []string{`originRequest.httpHostHeader: Invalid value: "a b": ` + hostHeader}},
		"server name with a port":        {`{originRequest: {originServerName: "a:443"}}`, []string{`originRequest.originServerName: Invalid value: "a:443": ` + serverName}},
		"relative path of a CA file":     {"{originRequest: {caPool: ca.crt}}", []string{`originRequest.caPool: Invalid value: "ca.crt": ` + caPool}},
		"unsupported proxy type":         {"{originRequest: {proxyType: http}}", []string{`originRequest.proxyType: Unsupported value: "http": supported values: "", "socks"`}},

		"listeners without protocolPort":     {"{listenerConfigurations: [{hostname: a.example}]}", []string{"listenerConfigurations[0].protocolPort: Required value"}},
		"unsupported protocol of a listener": {`{listenerConfigurations: [{protocolPort: "TCP:80"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "TCP:80": ` + port}},
		"protocol in lower case":             {`{listenerConfigurations: [{protocolPort: "http:80"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "http:80": ` + port}},
		"port 0":                             {`{listenerConfigurations: [{protocolPort: "HTTP:0"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "HTTP:0": ` + port}},
		"port 65536":                         {`{listenerConfigurations: [{protocolPort: "HTTP:65536"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "HTTP:65536": ` + port}},
		"a star as the port":                 {`{listenerConfigurations: [{protocolPort: "HTTPS:*"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "HTTPS:*": ` + port}},
		"port with a leading zero":           {`{listenerConfigurations: [{protocolPort: "HTTP:080"}]}`, []string{`listenerConfigurations[0].protocolPort: Invalid value: "HTTP:080": ` + port}},
		"hostname in upper case":             {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: A.example}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "A.example": ` + hostname}},
		"hostname with a final dot":          {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: a.example.}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "a.example.": ` + hostname}},
		"hostname of an asterisk":            {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: "*"}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "*": ` + hostname}},
		"hostname with an inner wildcard":    {`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: "a.*.example"}]}`, []string{`listenerConfigurations[0].hostname: Invalid value: "a.*.example": ` + hostname}},
		"duplicate listeners": {
			`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: a.example}, {protocolPort: "HTTP:80"}, {protocolPort: "HTTP:80", hostname: a.example}]}`,
			[]string{`listenerConfigurations[2]: Duplicate value: {"hostname":"a.example","protocolPort":"HTTP:80"}`},
		},
		"duplicate listeners without a hostname": {
			`{listenerConfigurations: [{protocolPort: "HTTP:80"}, {protocolPort: "HTTP:80", hostname: ""}]}`,
			[]string{`listenerConfigurations[1]: Duplicate value: {"hostname":"","protocolPort":"HTTP:80"}`},
		},

		"access without required": {
			`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {teamName: a, audTags: [b]}}]}`,
			[]string{"listenerConfigurations[0].access.required: Required value"},
		},
		"access without a team and tags":    {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true}}]}`, []string{"listenerConfigurations[0]." + noTags, "listenerConfigurations[0]." + noTeam}},
		"access without a team":             {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, audTags: [b]}}]}`, []string{"listenerConfigurations[0]." + noTeam}},
		"access without tags":               {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a}}]}`, []string{"listenerConfigurations[0]." + noTags}},
		"access with an empty list of tags": {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a, audTags: []}}]}`, []string{"listenerConfigurations[0]." + noTags}},
		"access with a domain as the team":  {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a.example, audTags: [b]}}]}`, []string{`listenerConfigurations[0].access.teamName: Invalid value: "a.example": ` + teamName}},
		"access with an empty team":         {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: "", audTags: [b]}}]}`, []string{`listenerConfigurations[0].access.teamName: Invalid value: "": ` + teamName}},
		"access with an empty tag":          {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a, audTags: [""]}}]}`, []string{`listenerConfigurations[0].access.audTags[0]: Invalid value: "": ` + audTag}},
		"access with a duplicate tag":       {`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a, audTags: [b, b]}}]}`, []string{`listenerConfigurations[0].access.audTags[1]: Duplicate value: "b"`}},

		"access with policies and a team": {
			`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, policies: [a], teamName: a}}]}`,
			[]string{"listenerConfigurations[0].access: Invalid value: access has both policies and teamName or audTags: set policies for an application that the controller manages, or the other two for one that you manage"},
		},
		"access with an empty list of policies": {
			`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, policies: []}}]}`,
			[]string{"listenerConfigurations[0].access.policies: Invalid value: 0: spec.listenerConfigurations[0].access.policies in body should have at least 1 items"},
		},
		"session of an application made by hand": {
			`{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: true, teamName: a, audTags: [b], sessionDuration: 8h}}]}`,
			[]string{"listenerConfigurations[0].access: Invalid value: access has sessionDuration or cors without policies: they are settings of an application that the controller manages"},
		},

		"managed applications without a team": {
			"{access: {applications: Managed}}",
			[]string{"access: Invalid value: access.teamName is not set: set the name of the Zero Trust organization, or set applications to Disabled"},
		},
		"unsupported mode of applications": {
			"{access: {applications: Manage, teamName: a}}",
			[]string{`access.applications: Unsupported value: "Manage": supported values: "Disabled", "Managed"`},
		},
		"policies with one name": {
			"{access: {policies: [{name: a, id: b}, {name: a, id: c}]}}",
			[]string{`access.policies[1]: Duplicate value: {"name":"a"}`},
		},
		"policy without an ID":          {"{access: {policies: [{name: a}]}}", []string{"access.policies[0].id: Required value"}},
		"policy with a slash in its ID": {"{access: {policies: [{name: a, id: b/c}]}}", []string{`access.policies[0].id: Invalid value: "b/c": must be the ID of a reusable policy, as the Cloudflare dashboard shows it: letters, digits and hyphens only`}},
		"policy in upper case":          {"{access: {policies: [{name: A, id: b}]}}", []string{`access.policies[0].name: Invalid value: "A": must be a name in lower case, such as employees`}},
		"negative number of applications": {
			"{access: {maxApplications: -1}}",
			[]string{"access.maxApplications: Invalid value: -1: spec.access.maxApplications in body should be greater than or equal to 0"},
		},
		"opening delay in milliseconds": {"{access: {openingDelay: 1ms}}", []string{`access.openingDelay: Invalid value: "1ms": ` + duration}},

		"unknown field": {"{connector: {replica: 2}}", []string{"connector.replica: Forbidden: unknown field; did you mean replicas?"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parseErrors(t, configuration(test.spec))
			for i, line := range got {
				got[i] = strings.TrimPrefix(line, "in.yaml: document 1: TunnelConfiguration default/settings: spec.")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestValidTunnelConfigurationsAreAccepted has objects at the validation's bounds.
func TestValidTunnelConfigurationsAreAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"empty spec":                         "{}",
		"account only":                       "{account: {accountID: a}}",
		"token only":                         "{account: {apiTokenSecretRef: {name: a}}}",
		"no Gateway fields":                  "{allowedGatewayFields: []}",
		"takeover alone":                     "{tunnel: {existing: {takeover: true}}}",
		"limits of zero":                     "{limits: {tunnelsPerNamespace: 0, connectorReplicas: {min: 0, max: 0}}}",
		"prefix similar to a reserved one":   "{connector: {allowedMetadataPrefixes: [notk8s.io, example.com]}}",
		"metrics on loopback":                "{connector: {metrics: Loopback, metricsFrom: []}}",
		"metrics peers":                      "{connector: {metricsFrom: [{namespaceSelector: {}}, {podSelector: {}}]}}",
		"shortest rotation":                  "{connector: {tokenRotation: 24h}}",
		"image without a tag":                "{connector: {image: cloudflare/cloudflared}}",
		"image with a registry":              `{connector: {image: "localhost:5000/a/b__c:v1"}}`,
		"autoscaling with defaults":          "{connector: {autoscaling: {}}}",
		"maxUnavailable of zero":             "{connector: {podDisruptionBudget: {maxUnavailable: 0}}}",
		"minAvailable of 100%":               "{connector: {podDisruptionBudget: {minAvailable: 100%}}}",
		"matchSNItoHost without http2Origin": "{originRequest: {matchSNItoHost: true, http2Origin: false}}",
		"http2Origin without matchSNItoHost": "{originRequest: {matchSNItoHost: false, http2Origin: true}}",
		"ports at the bounds":                `{listenerConfigurations: [{protocolPort: "HTTP:1"}, {protocolPort: "HTTP:59999"}, {protocolPort: "HTTPS:65499"}, {protocolPort: "HTTPS:65529"}, {protocolPort: "HTTPS:65535"}]}`,
		"a listener of every port":           `{listenerConfigurations: [{protocolPort: "*"}, {protocolPort: "*", hostname: a.example.com}]}`,
		"disabled applications":              "{access: {applications: Disabled, policies: [], maxApplications: 10000, openingDelay: 1s}}",
		"access that is not required":        `{listenerConfigurations: [{protocolPort: "HTTPS:443", access: {required: false, teamName: a}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			parseOne[*v1alpha1.TunnelConfiguration](t, configuration(spec))
		})
	}
}

// TestTunnelConfigurationsKeepEveryField parses and marshals objects that together
// set every field.
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
			t.Errorf("no object of the test data sets %s", path)
		}
	}
}

// generic decodes a document without its type.
func generic(t *testing.T, document string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// fields returns the paths to a type's fields, including the fields in nested types
// from the API group.
func fields(typ reflect.Type, path string) []string {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	paths := []string{path}
	if isAPIType(typ) {
		for i := range typ.NumField() {
			paths = append(paths, fields(typ.Field(i).Type, path+"."+typ.Field(i).Name)...)
		}
	}
	return paths
}

// setFields adds the paths to the fields that are set, in the format that fields uses.
func setFields(value reflect.Value, path string, set map[string]bool) {
	if value.IsZero() {
		return
	}
	set[path] = true
	switch {
	case value.Kind() == reflect.Pointer:
		if isAPIType(value.Type().Elem()) {
			setFields(value.Elem(), path, set)
		}
	case value.Kind() == reflect.Slice:
		for i := range value.Len() {
			setFields(value.Index(i), path, set)
		}
	case isAPIType(value.Type()):
		for i := range value.NumField() {
			setFields(value.Field(i), path+"."+value.Type().Field(i).Name, set)
		}
	}
}

// isAPIType reports whether typ is a struct from the API group.
func isAPIType(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && typ.PkgPath() == reflect.TypeFor[v1alpha1.TunnelConfiguration]().PkgPath()
}

func TestTunnelConfigurationErrorInAListNamesTheItem(t *testing.T) {
	got := parseErrors(t, `apiVersion: v1
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
