package connector

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// DefaultImage is the official image of cloudflared at the version that the
// controller is tested with. It is pinned, so that what runs changes with the
// controller and not by itself, and has its registry, because not every node
// adds one.
const DefaultImage = "docker.io/cloudflare/cloudflared:2026.8.2"

const (
	metricsPort int32 = 2000
	metricsName       = "metrics"
	readyPath         = "/ready"

	// user is the one that the official image runs as; by number, because
	// runAsNonRoot cannot be checked by name.
	user int64 = 65532

	// defaultGrace is cloudflared's own default, in seconds.
	defaultGrace int64 = 30
	// farewell is the time in seconds that a connector has to end after its grace
	// period, before it is killed.
	farewell int64 = 15
)

// podSpec is the pod of one connector.
func podSpec(in Input) (*corev1ac.PodSpecApplyConfiguration, error) {
	grace, err := gracePeriod(in.Settings)
	if err != nil {
		return nil, err
	}
	pod := corev1ac.PodSpec().
		WithServiceAccountName(Name(in.Gateway)).
		WithAutomountServiceAccountToken(false).
		// A Service called tunnel would give cloudflared TUNNEL_ variables, which it
		// takes for settings.
		WithEnableServiceLinks(false).
		// The image has no shell for a preStop hook, and needs none: cloudflared
		// itself stops taking requests when it is told to end.
		WithTerminationGracePeriodSeconds(grace + farewell).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(user).WithRunAsGroup(user).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithNodeSelector(in.Settings.NodeSelector)
	if err := place(pod, in); err != nil {
		return nil, err
	}
	container, err := container(in, grace)
	if err != nil {
		return nil, err
	}
	return pod.WithContainers(container), nil
}

// gracePeriod is the grace period in seconds.
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

// container runs cloudflared.
func container(in Input, grace int64) (*corev1ac.ContainerApplyConfiguration, error) {
	c := corev1ac.Container().
		WithName(connectorName).
		WithImage(ptr.Deref(in.Settings.Image, DefaultImage)).
		WithArgs(
			"tunnel", "--no-autoupdate",
			"--metrics", "0.0.0.0:"+strconv.Itoa(int(metricsPort)),
			"--protocol", string(protocol(in)),
			"--loglevel", string(ptr.Deref(in.Settings.LogLevel, v1alpha1.LogLevelInfo)),
			"--grace-period", strconv.FormatInt(grace, 10)+"s",
			"run",
		).
		WithEnv(corev1ac.EnvVar().WithName("TUNNEL_TOKEN").WithValueFrom(corev1ac.EnvVarSource().
			WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(in.TokenSecret).WithKey(in.TokenKey)))).
		WithPorts(corev1ac.ContainerPort().
			WithName(metricsName).WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP)).
		WithReadinessProbe(readiness()).
		WithLivenessProbe(liveness()).
		WithSecurityContext(corev1ac.SecurityContext().
			WithReadOnlyRootFilesystem(true).
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	if in.Settings.Resources == nil {
		return c, nil
	}
	resources, err := applied[corev1ac.ResourceRequirementsApplyConfiguration](in.Settings.Resources)
	if err != nil {
		return nil, fmt.Errorf("resources: %w", err)
	}
	return c.WithResources(resources), nil
}

// protocol is the transport that connectors are started with.
func protocol(in Input) v1alpha1.Protocol {
	set := ptr.Deref(in.Settings.Protocol, v1alpha1.ProtocolAuto)
	if set == v1alpha1.ProtocolAuto && in.HTTP2 {
		return v1alpha1.ProtocolHTTP2
	}
	return set
}

// readiness tells within ten seconds that a connector has lost the edge. No
// Service sends anything by it; it paces a rolling update and a disruption
// budget, and is what is said of the connectors.
func readiness() *corev1ac.ProbeApplyConfiguration {
	return probe().WithPeriodSeconds(5).WithTimeoutSeconds(2).WithFailureThreshold(2)
}

// liveness asks the same, and so must be patient: a connector that cannot reach
// the edge tries again by itself, and to restart it helps only when it hangs. An
// outage of Cloudflare, or of the way there, would otherwise restart every
// connector of every Gateway over and over, and send them all back at the same
// moment. Ten minutes are also the time after which the kubelet forgets earlier
// restarts, so that what was restarted in an outage is not left waiting after it.
func liveness() *corev1ac.ProbeApplyConfiguration {
	return probe().WithPeriodSeconds(60).WithTimeoutSeconds(5).WithFailureThreshold(10)
}

func probe() *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().
		WithPath(readyPath).WithPort(intstr.FromString(metricsName)).WithScheme(corev1.URISchemeHTTP))
}

// applied turns a part of an object into the part of an apply configuration that
// has the same fields. An error means a value that cannot be written as JSON.
func applied[To any](from any) (*To, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	to := new(To)
	return to, json.Unmarshal(text, to)
}
