package tunnel

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Facts is everything that a decision depends on.
type Facts struct {
	// Uptime is the time since this process started, on its monotonic clock. All
	// delays are measured with it.
	Uptime time.Duration
	// Clock is the wall clock. It only goes into records and into the schedule of
	// token rotation.
	Clock time.Time
	// Options are the settings of the controller.
	Options Options

	// Name is the namespace and name of the Gateway, which the Tunnel's object
	// name stands for.
	Name types.NamespacedName
	// Object is the Tunnel as it was last written; nil when there is none.
	Object *v1alpha1.Tunnel
	// Gateway is the Gateway as it was last read.
	Gateway Gateway
	// Desired is what the settings and routes ask for; nil when the Gateway does
	// not exist or its settings are not valid. Then everything stays as it is.
	Desired *Desired
	// Rivals are the other Tunnels that have, or ask for, the same tunnel.
	Rivals []Rival
	// Reserved is whether another Gateway of this process is claiming the tunnel
	// at this moment.
	Reserved bool
	// Credentials is whether there is an API token for the Tunnel's account.
	Credentials Credentials
	// OtherRotates is whether the token of another Tunnel is being rotated.
	OtherRotates bool
	// Token is what the token Secret of the connectors holds.
	Token TokenSecret
	// Connectors is the state of the objects and pods that run the connectors.
	Connectors Connectors
	// Memory is what this process remembers.
	Memory Memory
}

// Options are the settings of the controller that decisions depend on.
type Options struct {
	// ControllerName is the controller's name.
	ControllerName string
	// ClusterUID is the UID of the namespace kube-system.
	ClusterUID string
	// ClusterID begins the names of the tunnels of this installation.
	ClusterID string
	// RetirementDelay is how far apart the two live reads are that show that a
	// Gateway is gone.
	RetirementDelay time.Duration
	// DriftInterval is how long a configuration that was read is believed to be
	// unchanged.
	DriftInterval time.Duration
}

// GatewayState says what is known of a Gateway.
type GatewayState int

// The states of a Gateway.
const (
	// GatewayUnknown means that the API server did not say: the read was
	// forbidden, the kind is not served, the namespace is out of scope, the
	// GatewayClass is missing, or the answer was not the API server's own.
	GatewayUnknown GatewayState = iota
	// GatewayExists means that the Gateway exists and its class names this
	// controller.
	GatewayExists
	// GatewayGone means that a live read answered NotFound, or shows a
	// deletionTimestamp, or that the Gateway's Namespace does not exist.
	GatewayGone
	// GatewayNotManaged means that the live GatewayClass names another controller.
	GatewayNotManaged
)

// Gateway is what is known of the Gateway.
type Gateway struct {
	State GatewayState
	// UID of the Gateway that exists.
	UID types.UID
	// Paused is whether the Gateway has the annotation that stops changes.
	Paused bool
}

// Desired is what the settings and the routes of a Gateway ask for.
type Desired struct {
	// Spec is the desired spec of the Tunnel.
	Spec v1alpha1.TunnelSpec
	// Configuration is the desired configuration; nil when the Gateway is not
	// accepted, so that the configuration stays as it is.
	Configuration *provider.Configuration
	// Hash is the hash of Configuration.
	Hash string
	// NeedsHTTP2 is whether a GRPCRoute is served and the protocol is auto.
	NeedsHTTP2 bool
	// RunConnectors is whether the controller runs the connectors.
	RunConnectors bool
	// TokenRotation is the interval of token rotation; 0 for none.
	TokenRotation time.Duration
}

// Rival is another Tunnel object that has, or asks for, the same tunnel.
type Rival struct {
	// Object is the name of the rival Tunnel object.
	Object string
	// Recorded is whether its status records the tunnel.
	Recorded bool
	// Older is whether it is older than this Tunnel; of two equally old ones the
	// one with the lower UID is older.
	Older bool
	// OtherController is whether its spec names another controller.
	OtherController bool
	// ByName is whether its tunnel has the name of its Gateway, and is not an
	// existing one that it adopts.
	ByName bool
}

// Credentials says whether there is an API token for the Tunnel's account.
type Credentials struct {
	State CredentialsState
	// Version changes with the token.
	Version string
	// Message says why there is none.
	Message string
}

// CredentialsState says whether there is an API token.
type CredentialsState int

// The states of credentials.
const (
	// CredentialsUnknown means that the Secret could not be read.
	CredentialsUnknown CredentialsState = iota
	// CredentialsUsable means that there is a token.
	CredentialsUsable
	// CredentialsMissing means that there is no token.
	CredentialsMissing
	// CredentialsWrongAccount means that the Tunnel has no credentials of its own
	// and the controller's token is for another account.
	CredentialsWrongAccount
)

// TokenSecret is what the token Secret of the connectors holds.
type TokenSecret struct {
	State TokenState
	// Version changes with the token.
	Version string
}

// TokenState says what the token Secret holds.
type TokenState int

// The states of the token Secret.
const (
	// TokenUnknown means that the Secret could not be read.
	TokenUnknown TokenState = iota
	// TokenMissing means that there is no Secret, or that it does not hold a token
	// of the recorded tunnel.
	TokenMissing
	// TokenPresent means that the Secret holds a token of the recorded tunnel.
	TokenPresent
	// TokenNameConflict means that a Secret of the name exists and does not belong to the
	// Tunnel.
	TokenNameConflict
)

// Connectors is the state of the objects and pods that run the connectors.
type Connectors struct {
	// Current is whether the objects are as desired.
	Current bool
	// Exist is whether there is any object that runs connectors.
	Exist bool
	// Pods counts the pods that may be connected, terminating ones included.
	Pods int
	// RolledOut is whether every pod has the current settings and token.
	RolledOut bool
	// Desired and Ready are replica counts.
	Desired, Ready int32
	// GracePeriod is how long a connector may take to stop.
	GracePeriod time.Duration
	// Reason and Message say why the connectors are not ready; empty when they
	// are.
	Reason, Message string
}
