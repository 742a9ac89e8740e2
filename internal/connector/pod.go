package connector

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// defaultImageTag is the official cloudflared image, in the version that the controller
// is tested with. The tag is fixed, so connectors change only when the controller is
// upgraded. The registry is explicit, because some nodes have no default registry.
const defaultImageTag = "docker.io/cloudflare/cloudflared:2026.8.2"

// defaultImageDigest is the digest for defaultImageTag, or empty. The linker sets it in
// release builds.
var defaultImageDigest string

// DefaultImage returns the connector image that is used unless a GatewayClass sets
// another one.
func DefaultImage() string { return withDigest(defaultImageTag, defaultImageDigest) }

// withDigest appends the digest to the image unless it is empty.
func withDigest(image, digest string) string {
	if digest == "" {
		return image
	}
	return image + "@" + digest
}

const (
	metricsPort int32 = 2000
	metricsName       = "metrics"
	readyPath         = "/ready"
	// program is the name of the executable, which is in the search path of the image.
	program = "cloudflared"

	// user is the user ID in the official image. The kubelet cannot check runAsNonRoot for
	// a user name.
	user int64 = 65532

	// defaultReadyDelay and defaultGrace are the default ready delay and the default grace
	// period, in seconds. Both are above the ten seconds in which Cloudflare's edge notices
	// that a connector has connected or unregistered.
	defaultReadyDelay int64 = 15
	defaultGrace      int64 = 30
	// exitTime is how many seconds after the grace period the kubelet kills the
	// connector.
	exitTime int64 = 15
)

// podSpec returns the spec for a connector pod.
func podSpec(in Input) (*corev1ac.PodSpecApplyConfiguration, error) {
	grace, err := gracePeriod(in.Settings)
	if err != nil {
		return nil, err
	}
	pod := corev1ac.PodSpec().
		WithServiceAccountName(name(in.Tunnel)).
		WithAutomountServiceAccountToken(false).
		// The environment variables for a Service with the name "tunnel" would begin
		// with TUNNEL_, and cloudflared uses such variables as settings.
		WithEnableServiceLinks(false).
		// A preStop hook would only delay the end: on SIGTERM, cloudflared unregisters
		// at once and responds to /ready with 503, but serves the requests that the
		// edge still sends until the grace period ends. Then it closes its connections.
		WithTerminationGracePeriodSeconds(grace + exitTime).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(user).WithRunAsGroup(user).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithNodeSelector(in.Settings.NodeSelector)
	if err := setScheduling(pod, in); err != nil {
		return nil, err
	}
	if in.Envoy != nil {
		if err := addEnvoy(pod, in); err != nil {
			return nil, err
		}
	}
	container, err := connectorContainer(in, grace)
	if err != nil {
		return nil, err
	}
	return pod.WithContainers(container), nil
}

// gracePeriod returns the grace period in seconds.
func gracePeriod(settings v1alpha1.Connector) (int64, error) {
	if settings.GracePeriod == nil {
		return defaultGrace, nil
	}
	seconds, err := settings.GracePeriod.Seconds()
	if err != nil {
		return 0, fmt.Errorf("gracePeriod: %w", err)
	}
	return seconds, nil
}

// readyDelay returns the ready delay in seconds.
func readyDelay(settings v1alpha1.Connector) (int64, error) {
	if settings.ReadyDelay == nil {
		return defaultReadyDelay, nil
	}
	seconds, err := settings.ReadyDelay.Seconds()
	if err != nil {
		return 0, fmt.Errorf("readyDelay: %w", err)
	}
	return seconds, nil
}

// connectorContainer returns the container that runs cloudflared.
func connectorContainer(in Input, grace int64) (*corev1ac.ContainerApplyConfiguration, error) {
	delay, err := readyDelay(in.Settings)
	if err != nil {
		return nil, err
	}
	c := corev1ac.Container().
		WithName(containerName).
		WithImage(ptr.Deref(in.Settings.Image, DefaultImage())).
		WithArgs(
			"tunnel", "--no-autoupdate",
			"--metrics", metricsAddress(in.Settings),
			"--protocol", string(protocol(in)),
			"--edge-ip-version", edgeIPVersion(in.Settings),
			"--loglevel", string(ptr.Deref(in.Settings.LogLevel, v1alpha1.LogLevelInfo)),
			"--grace-period", strconv.FormatInt(grace, 10)+"s",
			"run",
		).
		WithEnv(corev1ac.EnvVar().WithName("TUNNEL_TOKEN").WithValueFrom(corev1ac.EnvVarSource().
										WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(name(in.Tunnel)).WithKey(TokenKey)))).
		WithReadinessProbe(readiness(in.Settings, int32(delay))). // #nosec G115 -- validated
		WithLivenessProbe(liveness(in)).
		WithSecurityContext(restricted())
	if !onLoopback(in.Settings) {
		c.WithPorts(corev1ac.ContainerPort().
			WithName(metricsName).WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP))
	}
	return c, setResources(c, "resources", in.Settings.Resources)
}

// restricted returns a security context without privileges.
func restricted() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithReadOnlyRootFilesystem(true).
		WithAllowPrivilegeEscalation(false).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// protocol returns the protocol between connectors and the edge. With Envoy, auto never
// depends on routes, because a GRPCRoute must not replace the pods.
func protocol(in Input) v1alpha1.Protocol {
	configured := ptr.Deref(in.Settings.Protocol, v1alpha1.ProtocolAuto)
	if configured == v1alpha1.ProtocolAuto && (in.HTTP2 || in.Envoy != nil) {
		return v1alpha1.ProtocolHTTP2
	}
	return configured
}

// ServesMetrics reports whether other pods can read the metrics from a connector and
// its Envoy.
func ServesMetrics(settings v1alpha1.Connector) bool { return !onLoopback(settings) }

// edgeIPVersion returns the value for cloudflared's flag. Without the flag, cloudflared
// uses only IPv4.
func edgeIPVersion(settings v1alpha1.Connector) string {
	return strings.ToLower(string(ptr.Deref(settings.EdgeIPVersion, v1alpha1.EdgeIPVersionAuto)))
}

// onLoopback reports whether the metrics port is reachable only from within the pod.
func onLoopback(settings v1alpha1.Connector) bool {
	return ptr.Deref(settings.Metrics, v1alpha1.MetricsPod) == v1alpha1.MetricsLoopback
}

// metricsAddress returns the address on which cloudflared serves the metrics port: by
// default on all IPv4 and IPv6 addresses.
func metricsAddress(settings v1alpha1.Connector) string {
	host := ""
	if onLoopback(settings) {
		host = "127.0.0.1"
	}
	return host + ":" + strconv.Itoa(int(metricsPort))
}

// readiness returns the readiness probe. It detects within ten seconds that a connector
// has lost its connection to Cloudflare's edge. No Service uses the result, but rolling
// updates, the PodDisruptionBudget and the ConnectorsReady condition do. The
// PodDisruptionBudget would ignore minReadySeconds, so the probe begins after the delay
// instead.
func readiness(settings v1alpha1.Connector, delay int32) *corev1ac.ProbeApplyConfiguration {
	timeout := int32(2)
	if onLoopback(settings) {
		timeout = 5 // includes starting a process, which takes longer under a CPU limit
	}
	p := probe(settings).WithPeriodSeconds(5).WithTimeoutSeconds(timeout).WithFailureThreshold(2)
	if delay > 0 { // the API server omits 0
		p.WithInitialDelaySeconds(delay)
	}
	return p
}

// liveness returns the liveness probe. It restarts a connector that has not been
// connected to Cloudflare's edge for ten minutes. A connector reconnects automatically,
// so a restart helps only if the process hangs. With a shorter time, a Cloudflare
// outage would restart the connectors of all Tunnels, and all would reconnect at the
// same time. After ten minutes the kubelet also resets the restart backoff, so
// connectors start without delay when the outage ends.
func liveness(in Input) *corev1ac.ProbeApplyConfiguration {
	if in.Envoy != nil {
		return envoyLiveness()
	}
	return probe(in.Settings).WithPeriodSeconds(60).WithTimeoutSeconds(5).WithFailureThreshold(10)
}

// probe returns a probe that requests /ready. The kubelet cannot connect to a pod's
// loopback address, so it runs a cloudflared command in the container, which sends the
// request and ends with status 1 unless the response is 200.
func probe(settings v1alpha1.Connector) *corev1ac.ProbeApplyConfiguration {
	if onLoopback(settings) {
		return corev1ac.Probe().WithExec(corev1ac.ExecAction().
			WithCommand(program, "tunnel", "--metrics", metricsAddress(settings), "ready"))
	}
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().
		WithPath(readyPath).WithPort(intstr.FromString(metricsName)).WithScheme(corev1.URISchemeHTTP))
}

// applied converts a part of an object to the apply configuration with the same fields.
// It returns an error for a value that cannot be marshalled to JSON.
func applied[To any](source any) (*To, error) {
	text, err := json.Marshal(source)
	if err != nil {
		return nil, err
	}
	target := new(To)
	return target, json.Unmarshal(text, target)
}
