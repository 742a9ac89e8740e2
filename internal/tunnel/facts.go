package tunnel

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Facts contains everything that a decision depends on.
type Facts struct {
	// Uptime is the time since this process started, on its monotonic clock. All
	// delays use it.
	Uptime time.Duration
	// Clock is the wall clock time. Only records and the schedule of token rotation
	// use it.
	Clock   time.Time
	Options Options

	// Name is the Gateway's namespace and name. The Tunnel object's name is derived
	// from it.
	Name types.NamespacedName
	// Object is the Tunnel as last written; nil if it does not exist.
	Object *v1alpha1.Tunnel
	// Gateway is the Gateway as last read.
	Gateway Gateway
	// Desired follows from the settings and routes. It is nil if the Gateway does not
	// exist or its settings are not valid; the tunnel is then not changed.
	Desired *Desired
	// Rivals are the other Tunnels that record or request the same tunnel.
	Rivals []Rival
	// Reserved reports whether another Gateway in this process is claiming the tunnel.
	Reserved bool
	// Credentials describes the API token for the Tunnel's account.
	Credentials Credentials
	// OtherRotating reports whether another Tunnel's token is being rotated.
	OtherRotating bool
	// Token describes the connectors' token Secret.
	Token TokenSecret
	// Connectors describes the objects and pods that run the connectors.
	Connectors Connectors
	// Envoys describes the Envoys that are connected to this process.
	Envoys Envoys
	// ChangedNamespaces are the namespaces whose objects have changed since the
	// configuration was last written. They are known only if [DependsOnChanges].
	ChangedNamespaces []string
	// DNS describes the DNS records that lead to the tunnel.
	DNS DNS
	// Access describes the applications of the Gateway's hostnames.
	Access Access
	// Memory is what only this process knows.
	Memory Memory
}

// Options are the controller settings that decisions depend on.
type Options struct {
	// ControllerName is the name that GatewayClasses refer to.
	ControllerName string
	// ClusterUID is the UID of the namespace kube-system.
	ClusterUID string
	// ClusterID identifies this installation. The names of its tunnels begin with
	// NamePrefix(ClusterID).
	ClusterID string
	// RetirementDelay is the time between the two live reads that are required to treat
	// a Gateway as gone.
	RetirementDelay time.Duration
	// DriftInterval is how often the remote configuration is read to detect external
	// changes.
	DriftInterval time.Duration
}

// GatewayState tells whether a Gateway exists and belongs to this controller.
type GatewayState int

const (
	// GatewayUnknown means that the state could not be determined: the read was
	// forbidden, the kind is not served, the namespace is out of scope, the
	// GatewayClass is missing, or the response did not come from the API server.
	GatewayUnknown GatewayState = iota
	// GatewayExists means that the Gateway exists and its GatewayClass names this
	// controller.
	GatewayExists
	// GatewayGone means that a live read returned NotFound or a deletionTimestamp,
	// or that the Gateway's Namespace does not exist.
	GatewayGone
	// GatewayNotManaged means that the live GatewayClass names another controller.
	GatewayNotManaged
)

// Gateway is the observed Gateway.
type Gateway struct {
	State GatewayState
	// UID is set if the Gateway exists.
	UID types.UID
	// Paused reports whether the Gateway has the annotation
	// [v1alpha1.PausedAnnotation].
	Paused bool
}

// Desired is what a Gateway's settings and routes ask for.
type Desired struct {
	// Spec is the Tunnel's desired spec. [DesiredSpec] sets spec.paused.
	Spec v1alpha1.TunnelSpec
	// DataPlane is the data plane that the settings ask for. A Tunnel that records another
	// data plane changes to it in phases.
	DataPlane v1alpha1.DataPlane
	// Configuration is the desired configuration for the data plane in effect. It is nil if
	// the Gateway is not accepted; the configuration is then not changed.
	Configuration *provider.Configuration
	// ConfigurationDataPlane is the data plane that Configuration is for.
	ConfigurationDataPlane v1alpha1.DataPlane
	// Hash is the hash of Configuration.
	Hash string
	// RulesUnknown reports whether Configuration was decided without the rules in effect, on
	// which it depends. It is not written: the remote configuration is read, and the
	// controller decides again.
	RulesUnknown bool
	// Hostnames counts the hostnames that the routes serve.
	Hostnames int
	// Other is the desired configuration for the data plane that is not in effect. It
	// is nil unless [NeedsBoth], and if Configuration is nil.
	Other *OtherDataPlane
	// NeedsHTTP2 reports whether a GRPCRoute is served and the protocol is auto. It has
	// an effect only with ingress rules: with Envoy, auto means HTTP/2 from the start.
	NeedsHTTP2 bool
	// RunConnectors reports whether the controller runs the connectors.
	RunConnectors bool
	// TokenRotation is how often the token is rotated; 0 for never.
	TokenRotation time.Duration
	// Updates limits how often the configuration is written, and Revocations how often the
	// controller removes revoked rules from it meanwhile.
	Updates, Revocations UpdateLimit
}

// OtherDataPlane is the desired configuration for the data plane that is not in effect.
type OtherDataPlane struct {
	// Configuration is the desired configuration.
	Configuration *provider.Configuration
	Hash          string
	// Excess describes how far the routes exceed the limits of ingress rules, with the
	// number and the limit, and what to do. It is empty if they do not, and always
	// empty for Envoy.
	Excess string
}

// Rival is another Tunnel object that records or requests the same tunnel.
type Rival struct {
	// Object is the rival Tunnel object's name.
	Object string
	// Recorded reports whether the rival's status records the tunnel.
	Recorded bool
	// Older reports whether the rival is older than this Tunnel. If both have the
	// same age, the Tunnel with the lower UID counts as older.
	Older bool
	// OtherController reports whether the rival's spec names another controller.
	OtherController bool
	// HasGatewayName reports whether the rival's tunnel has the name that is derived
	// from its Gateway, so the rival does not adopt an existing tunnel.
	HasGatewayName bool
}

// Credentials describes the API token for the Tunnel's account.
type Credentials struct {
	State CredentialsState
	// Version changes with the token.
	Version string
	// Message explains why the token is missing.
	Message string
}

// CredentialsState tells whether an API token can be used.
type CredentialsState int

const (
	// CredentialsUnknown means that the Secret could not be read.
	CredentialsUnknown CredentialsState = iota
	// CredentialsUsable means that the token exists.
	CredentialsUsable
	// CredentialsMissing means that the token does not exist.
	CredentialsMissing
	// CredentialsWrongAccount means that the Tunnel's spec names no credentials and
	// the controller's token is for another account.
	CredentialsWrongAccount
)

// TokenSecret describes the connectors' token Secret.
type TokenSecret struct {
	State TokenState
	// Version changes with the token.
	Version string
}

// TokenState tells what a token Secret contains.
type TokenState int

const (
	// TokenUnknown means that the Secret could not be read.
	TokenUnknown TokenState = iota
	// TokenMissing means that the Secret does not exist or does not contain a token for
	// the recorded tunnel.
	TokenMissing
	// TokenPresent means that the Secret contains a token for the recorded tunnel.
	TokenPresent
	// TokenNameConflict means that a Secret with this name exists and does not belong
	// to the Tunnel.
	TokenNameConflict
)

// DNS describes the DNS records that lead to the tunnel. Its zero value means that no
// zone is managed.
type DNS struct {
	// Unreleased reports whether records remain that a retiring Tunnel moves or
	// deletes before its tunnel is deleted.
	Unreleased bool
	// BlockedUntil is the uptime until which an outage or another API token may have prevented
	// the release of records; 0 if neither has.
	BlockedUntil time.Duration
	// Status is what the Tunnel reports about the records; nil if dns.mode is Off.
	Status *v1alpha1.TunnelDNSStatus
}

// Connectors describes the objects and pods that run the connectors.
type Connectors struct {
	// Current reports whether the objects are as desired.
	Current bool
	// Exist reports whether any object that runs connectors exists.
	Exist bool
	// Pods counts the pods that may be connected, including terminating pods.
	Pods int
	// RolledOut reports whether every pod has the current settings and token.
	RolledOut bool
	// WithoutEnvoy and WithEnvoy count the pods without and with Envoy, including
	// terminating pods.
	WithoutEnvoy, WithEnvoy int
	// NotReady is a sentence that names the pod that delays the rollout and the cause.
	// It is empty if no pod does.
	NotReady string
	// Desired and Ready count replicas.
	Desired, Ready int32
	// GracePeriod is how long a connector may take to stop.
	GracePeriod time.Duration
	// Reason and Message explain why the connectors are not ready. Reason is empty if
	// they are ready.
	Reason  conditions.Reason
	Message string
}

// Envoys describes how the Envoys connected to this process have received the Gateway's
// last publication. Its zero value means that none is connected.
type Envoys struct {
	// Connected counts the connected Envoys.
	Connected int
	// Acknowledged reports whether every connected Envoy has acknowledged the publication.
	Acknowledged bool
	// Unsettled reports whether hostnames in the publication wait for a configuration
	// change that leads their requests to another listener.
	Unsettled bool
	// Late reports whether a connected Envoy takes unusually long to acknowledge it.
	Late bool
	// Rejected is the error with which an Envoy has rejected the publication; empty for
	// none.
	Rejected string
}
