package convert

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// connectorKeys are the top-level keys with an equivalent in spec.connector.
var connectorKeys = []string{"protocol", "loglevel", "grace-period", "edge-ip-version"}

// topNotes say why the other top-level keys of cloudflared have no equivalent. They are
// flags of "cloudflared tunnel".
var topNotes = []struct {
	kind         NoteKind
	keys         []string
	text, advice string
}{
	{NoteStep, []string{"tunnel"}, "the Gateway gets a new tunnel", "to take over a remotely managed tunnel instead, set spec.tunnel.existing in the TunnelConfiguration"},
	{NoteInfo, []string{"credentials-file", "credentials-contents", "token", "token-file", "origincert"}, "the controller manages the credentials of its tunnels", ""},
	{NoteInfo, []string{"no-autoupdate", "autoupdate-freq", "pidfile", "no-prechecks"}, "the controller runs cloudflared as a container, which does not need this setting", ""},
	{NoteStep, []string{"metrics", "metrics-update-freq"}, "connectors serve metrics on port 2000", "metricsFrom in the GatewayClass's TunnelConfiguration selects the pods that may connect"},
	{NoteStep, []string{"logfile", "log-directory", "output", "transport-loglevel", "trace-output"}, "connectors log to standard output", "collect the logs of their pods"},
	{NoteDifferent, []string{"region", "edge", "edge-bind-address", "post-quantum", "retries", "max-edge-addr-retries", "ha-connections", "rpc-timeout", "write-stream-timeout", "features", "tag", "label", "dns-resolver-addrs", "cacert"},
		"the controller runs connectors without this setting", "if you need it, run the connectors yourself with connector.enabled: false"},
	{NoteDifferent, []string{"icmpv4-src", "icmpv6-src", "max-active-flows", "lb-pool", "hostname"}, "the controller has no equivalent", "keep it on the old tunnel"},
	{NoteInfo, []string{"config", "name", "management-hostname", "compression-quality"}, "has no effect on requests", ""},
}

// singleKeys are the keys with which a configuration without rules has one service, and
// the settings for this service.
var singleKeys = []string{
	"url", "unix-socket", "hello-world", "bastion", "socks5", "proxy-connect-timeout", "proxy-tls-timeout", "proxy-tcp-keepalive",
	"proxy-no-happy-eyeballs", "proxy-keepalive-connections", "proxy-keepalive-timeout", "http-host-header", "origin-server-name",
	"match-sni-to-host", "no-tls-verify", "no-chunked-encoding", "proxy-address", "proxy-port", "http2-origin", "origin-ca-pool",
}

// readTopKey reads or reports another key at the top level.
func (c *Configuration) readTopKey(e entry) {
	if slices.Contains(connectorKeys, e.key) || slices.Contains(singleKeys, e.key) {
		c.Connector[e.key] = Value{c.text(e, e.key), e.line}
		return
	}
	for _, n := range topNotes {
		if slices.Contains(n.keys, e.key) {
			c.add(n.kind, e.line, e.key, n.text, n.advice)
			return
		}
	}
	c.add(NoteDifferent, e.line, e.key, "convert does not know this key", "check in the documentation of cloudflared whether you need it")
}

// readSingleService makes a rule of a configuration that has no rules, but the key url.
func (c *Configuration) readSingleService() {
	service, hasURL := c.Connector["url"]
	single := len(c.Rules) == 0 && hasURL
	if single {
		c.Rules = []Rule{{Line: service.Line, Service: service.Text, Own: Settings{}, lines: map[string]int{"service": service.Line}}}
		c.add(NoteInfo, service.Line, "url", "is the service for all requests", "")
	}
	for _, key := range singleKeys {
		value, ok := c.Connector[key]
		switch {
		case !ok || single && key == "url":
		case single:
			c.add(NoteDifferent, value.Line, key, "convert does not read settings for a configuration without rules", "write the rule under ingress, with its originRequest")
		default:
			c.add(NoteInfo, value.Line, key, "has no effect in a configuration with rules", "")
		}
	}
}

// convertConnector converts the keys for the connectors. Only a GatewayClass may set them
// by default, because they change the pods in the controller's namespace.
func (c *converter) convertConnector() {
	var connector v1alpha1.Connector
	for _, key := range connectorKeys {
		value, ok := c.input.Connector[key]
		if !ok {
			continue
		}
		if !setConnector(&connector, key, value.Text) {
			c.addTop(NoteDifferent, key, value, fmt.Sprintf("connectors cannot have the value %q", value.Text), "the default applies")
			continue
		}
		if c.GatewayClass != "" {
			c.addTop(NoteStep, key, value, "belongs to the TunnelConfiguration of the GatewayClass "+c.GatewayClass,
				fmt.Sprintf("set spec.connector.%s to %s there", connectorFields[key], value.Text))
		}
	}
	if !reflect.ValueOf(connector).IsZero() && c.GatewayClass == "" {
		c.class.Connector = &connector
	}
	if c.DataPlane == v1alpha1.DataPlaneEnvoy && c.GatewayClass == "" {
		c.class.DataPlane = ptr.To(v1alpha1.DataPlaneEnvoy)
	}
}

func (c *converter) addTop(kind NoteKind, key string, value Value, text, advice string) {
	c.notes = append(c.notes, Note{kind, c.input.line(value.Line), key, text, advice})
}

// connectorFields are the names of the keys in spec.connector.
var connectorFields = map[string]string{
	"protocol": "protocol", "loglevel": "logLevel", "grace-period": "gracePeriod", "edge-ip-version": "edgeIPVersion",
}

// maxGracePeriod is the limit of cloudflared.
const maxGracePeriod = 3 * time.Minute

// setConnector sets the field for a key. It returns false if the field cannot have the
// value.
func setConnector(connector *v1alpha1.Connector, key, value string) bool {
	valid := slices.Contains(connectorValues[key], value)
	switch {
	case key == "grace-period":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second || d%time.Second != 0 || d > maxGracePeriod {
			return false
		}
		connector.GracePeriod = ptr.To(durationText(int64(d / time.Second)))
		return true
	case !valid:
		return false
	case key == "protocol":
		connector.Protocol = ptr.To(v1alpha1.Protocol(value))
	case key == "loglevel":
		connector.LogLevel = ptr.To(v1alpha1.LogLevel(value))
	case value == "auto":
		connector.EdgeIPVersion = ptr.To(v1alpha1.EdgeIPVersionAuto)
	default:
		connector.EdgeIPVersion = ptr.To(v1alpha1.EdgeIPVersion(value))
	}
	return true
}

// connectorValues are the values that a connector's field can have.
var connectorValues = map[string][]string{
	"protocol":        {"auto", "http2", "quic"},
	"loglevel":        {"debug", "info", "warn", "error", "fatal"},
	"edge-ip-version": {"auto", "4", "6"},
}
