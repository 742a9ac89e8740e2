package connector

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// defaultEnvoyImageTag is the official Envoy image, in the version that the controller
// is tested with.
const defaultEnvoyImageTag = "docker.io/envoyproxy/envoy:distroless-v1.40.0"

// defaultEnvoyImageDigest is the digest for defaultEnvoyImageTag, or empty. The linker
// sets it in release builds.
var defaultEnvoyImageDigest string

// DefaultEnvoyImage returns the Envoy image that is used unless a GatewayClass sets
// another one.
func DefaultEnvoyImage() string { return withDigest(defaultEnvoyImageTag, defaultEnvoyImageDigest) }

// Envoy is the Envoy beside each connector, which routes the requests.
type Envoy struct {
	// Controller is the absolute DNS name of the Service through which the Envoys
	// connect to the controller.
	Controller string
}

const (
	envoyName      = "envoy"
	identityVolume = "identity"
	runVolume      = "run"

	defaultConcurrency int32 = 2
	// identityMode lets any user in the container read the files, so that it does not
	// depend on the image's user. No other container has the volume.
	identityMode int32 = 0o444
)

// addEnvoy adds Envoy to the pod as a sidecar. The kubelet starts the connector after
// Envoy's startup probe has succeeded, and stops Envoy after the connector has ended,
// so that a stopping connector can serve. Envoy itself ends at once and does not wait
// for requests.
func addEnvoy(pod *corev1ac.PodSpecApplyConfiguration, in Input) error {
	container, err := envoyContainer(in)
	if err != nil {
		return err
	}
	pod.WithInitContainers(container).WithVolumes(
		// The kubelet replaces the files when the certificate is renewed, and Envoy reads
		// them again, so that no pod is replaced.
		corev1ac.Volume().WithName(identityVolume).WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(IdentitySecretName(in.Tunnel)).WithDefaultMode(identityMode)),
		corev1ac.Volume().WithName(runVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse("1Mi"))),
	)
	return nil
}

// envoyContainer returns the container that runs Envoy. Its configuration is an
// argument, so that a different configuration replaces the pods.
func envoyContainer(in Input) (*corev1ac.ContainerApplyConfiguration, error) {
	settings := ptr.Deref(in.Settings.Envoy, v1alpha1.EnvoyProxy{})
	bootstrap, err := envoy.EncodeBootstrap(in.Envoy.Controller)
	if err != nil {
		return nil, err
	}
	c := corev1ac.Container().
		WithName(envoyName).
		WithImage(ptr.Deref(settings.Image, DefaultEnvoyImage())).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways). // makes the init container a sidecar
		WithArgs(
			"--config-yaml", string(bootstrap),
			// The default is the number of cores on the node.
			"--concurrency", strconv.Itoa(int(ptr.Deref(settings.Concurrency, defaultConcurrency))),
			"--log-level", envoyLogLevel(in.Settings),
			"--disable-hot-restart",
		).
		WithPorts(corev1ac.ContainerPort().
			WithName(envoyName).WithContainerPort(envoy.PortReady).WithProtocol(corev1.ProtocolTCP)).
		// The listener for probes comes last in the first configuration from the
		// controller. The kubelet restarts an Envoy that has none after ten minutes.
		WithStartupProbe(envoyProbe().WithPeriodSeconds(1).WithFailureThreshold(600)).
		WithReadinessProbe(envoyProbe().WithPeriodSeconds(5).WithFailureThreshold(2)).
		WithSecurityContext(restricted()).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName(identityVolume).WithMountPath(envoy.CertificatesPath).WithReadOnly(true),
			corev1ac.VolumeMount().WithName(runVolume).WithMountPath(envoy.RunPath),
		)
	return c, setResources(c, "envoy.resources", settings.Resources)
}

// envoyLogLevel returns the Envoy log level that corresponds to the connector's level.
func envoyLogLevel(settings v1alpha1.Connector) string {
	level := ptr.Deref(settings.LogLevel, v1alpha1.LogLevelInfo)
	if level == v1alpha1.LogLevelFatal {
		return "critical"
	}
	return string(level)
}

// envoyProbe returns a probe for Envoy. It uses the port number, because a port name is
// valid only for the container that has the port. Envoy responds late while it
// processes a large configuration.
func envoyProbe() *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithTimeoutSeconds(5).WithHTTPGet(corev1ac.HTTPGetAction().
		WithPath(readyPath).WithPort(intstr.FromInt32(envoy.PortReady)).WithScheme(corev1.URISchemeHTTP))
}

// envoyLiveness returns the liveness probe for a connector with an Envoy. The connector
// stays connected to Cloudflare's edge while Envoy fails, and responds to all requests
// with 502. The probe therefore disconnects it: the kubelet stops the connector and
// starts it again after Envoy has become ready.
func envoyLiveness() *corev1ac.ProbeApplyConfiguration {
	return envoyProbe().WithPeriodSeconds(10).WithFailureThreshold(3)
}
