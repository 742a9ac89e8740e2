package tunnel

import "fmt"

// Reason names a problem, or the state of a condition without one. It is the
// reason of conditions and the label of metrics.
type Reason string

// The reasons of problems. [Catalogue] says what each means.
const (
	ReasonSettingsNotApplied    Reason = "SettingsNotApplied"
	ReasonObjectMismatch        Reason = "ObjectMismatch"
	ReasonOtherCluster          Reason = "OtherCluster"
	ReasonTunnelInUse           Reason = "TunnelInUse"
	ReasonNameReserved          Reason = "NameReserved"
	ReasonTunnelMissing         Reason = "TunnelMissing"
	ReasonLocallyManaged        Reason = "LocallyManaged"
	ReasonTakeoverRequired      Reason = "TakeoverRequired"
	ReasonContested             Reason = "Contested"
	ReasonConfigurationRejected Reason = "ConfigurationRejected"
	ReasonCredentialsMissing    Reason = "CredentialsMissing"
	ReasonWrongAccount          Reason = "WrongAccount"
	ReasonUnauthorized          Reason = "Unauthorized"
	ReasonRateLimited           Reason = "RateLimited"
	ReasonUnavailable           Reason = "CloudflareUnavailable"
	ReasonPaused                Reason = "Paused"
	ReasonGatewayMissing        Reason = "GatewayMissing"
	ReasonGatewayUnknown        Reason = "GatewayUnknown"
	ReasonDeletionPending       Reason = "DeletionPending"
	ReasonConnectorsStopping    Reason = "ConnectorsStopping"
	ReasonConnectorsConnected   Reason = "ConnectorsConnected"
	ReasonPrivateRoutes         Reason = "PrivateRoutes"
	ReasonObjectTaken           Reason = "ObjectTaken"
	ReasonConnectorsFailed      Reason = "ConnectorsFailed"
	ReasonTokenFailed           Reason = "TokenFailed"
	ReasonRotationBlocked       Reason = "RotationBlocked"
	ReasonKubernetes            Reason = "KubernetesUnavailable"
	ReasonFailed                Reason = "Failed"
)

// The reasons of conditions that report no problem. [States] says what each
// means.
const (
	ReasonServing         Reason = "Serving"
	ReasonPending         Reason = "Pending"
	ReasonAccepted        Reason = "Accepted"
	ReasonApplied         Reason = "Applied"
	ReasonRetained        Reason = "Retained"
	ReasonConnectorsReady Reason = "Ready"
)

// Problem is why a tunnel is not as desired.
type Problem struct {
	Reason Reason
	// Message says what is wrong and where, and what to do.
	Message string
	// NeedsPerson is whether the problem lasts until a person acts.
	NeedsPerson bool
}

// Entry describes a reason in the catalogue.
type Entry struct {
	Reason Reason
	// Meaning says what is wrong.
	Meaning string
	// Remedy says what to do.
	Remedy string
	// NeedsPerson is whether the problem lasts until a person acts.
	NeedsPerson bool
}

// Catalogue describes every reason of a problem, in the order in which the documentation
// lists them. Conditions, events, metrics and documentation follow it.
var Catalogue = []Entry{
	{ReasonSettingsNotApplied, "The settings ask for another account, name or existing tunnel than the Tunnel records. The recorded tunnel keeps serving.",
		"Restore the setting, or delete the Tunnel object to switch; the old tunnel then stays at Cloudflare.", true},
	{ReasonObjectMismatch, "A Tunnel object of the Gateway's name exists that belongs to another Gateway or controller. It is not used.",
		"Delete the Tunnel object.", true},
	{ReasonOtherCluster, "The Tunnel object was created in another cluster, for instance restored from a backup. Its tunnel is not touched.",
		"Delete the Tunnel object if this cluster replaces the other one.", true},
	{ReasonTunnelInUse, "Another Gateway uses the tunnel that tunnel.existing.id names.",
		"Name another tunnel.", true},
	{ReasonNameReserved, "The tunnel that tunnel.existing.id names was created for another Gateway.",
		"Name another tunnel.", true},
	{ReasonTunnelMissing, "The tunnel that tunnel.existing.id names does not exist in the account.",
		"Correct the ID, or remove tunnel.existing and delete the Tunnel object.", true},
	{ReasonLocallyManaged, "The tunnel is locally managed: its connectors read their configuration from a file. It is not written, deleted or connected.",
		"Migrate the tunnel to remote management in the Cloudflare dashboard, or rename it if it only has the name of this Gateway's tunnel.", true},
	{ReasonTakeoverRequired, "The adopted tunnel has a configuration that this controller did not write.",
		"Set tunnel.existing.takeover in the TunnelConfiguration of the GatewayClass.", true},
	{ReasonContested, "The configuration of the tunnel keeps being changed outside the controller, so the controller has stopped writing it.",
		"Find the other writer, then pause the Gateway and resume it.", true},
	{ReasonConfigurationRejected, "Cloudflare rejected the configuration.",
		"Report the message as a defect of the controller.", false},
	{ReasonCredentialsMissing, "There is no API token for the account of the tunnel.",
		"Create the Secret with the API token.", true},
	{ReasonWrongAccount, "The controller's API token is for another account than the tunnel's, and the Tunnel names no Secret.",
		"Name the Secret in spec.account of the TunnelConfiguration of the GatewayClass.", true},
	{ReasonUnauthorized, "Cloudflare refuses the API token.",
		"Give the token the permission Cloudflare Tunnel: Edit for the account, or replace it.", false},
	{ReasonRateLimited, "The rate limit of the Cloudflare API is reached.",
		"Wait; find out what else uses the API as the same user.", false},
	{ReasonUnavailable, "The Cloudflare API cannot be reached or does not answer as documented.",
		"Wait; check the network path if it lasts.", false},
	{ReasonPaused, "The Gateway is paused, so nothing is changed at Cloudflare.",
		"Remove the annotation tunnelgateway.dev/paused; if the Gateway is gone, set spec.paused of the Tunnel to false or its deletionPolicy to Retain.", true},
	{ReasonGatewayMissing, "The Gateway is gone. The tunnel keeps serving until the retirement delay has passed.",
		"Nothing; create the Gateway again to keep the tunnel.", false},
	{ReasonGatewayUnknown, "The API server does not say whether the Gateway exists. The tunnel keeps serving.",
		"Check the controller's permissions, the CRDs and the GatewayClass.", false},
	{ReasonDeletionPending, "The tunnel of an earlier Gateway of this name is being deleted.",
		"Wait.", false},
	{ReasonConnectorsStopping, "The connectors are stopping.",
		"Wait.", false},
	{ReasonConnectorsConnected, "Connectors that this controller does not run are connected to the tunnel, so it is not deleted.",
		"Stop those connectors, or set deletionPolicy of the Tunnel to Retain.", true},
	{ReasonPrivateRoutes, "Private network routes lead to the tunnel, so that Cloudflare refuses to delete it.",
		"Remove the routes in the Cloudflare dashboard, or set deletionPolicy of the Tunnel to Retain.", true},
	{ReasonObjectTaken, "An object with the name of the connectors exists and does not belong to the Tunnel.",
		"Delete or rename that object.", true},
	{ReasonConnectorsFailed, "The objects that run the connectors could not be written.",
		"Read the message; it repeats what the API server answered.", false},
	{ReasonTokenFailed, "The token of the tunnel could not be read from Cloudflare or written to its Secret.",
		"Read the message.", false},
	{ReasonRotationBlocked, "The token is not rotated now.",
		"Read the message; it says what prevents the rotation.", true},
	{ReasonKubernetes, "The Kubernetes API server did not accept a request.",
		"Check the controller's permissions.", false},
	{ReasonFailed, "The step failed.", "Read the message.", false},
}

// States describes the reasons of a Tunnel's conditions that report no problem,
// in the order in which the documentation lists them.
var States = []Entry{
	{Reason: ReasonServing, Meaning: "The tunnel serves its Gateway as desired.", Remedy: "Nothing."},
	{Reason: ReasonPending, Meaning: "The controller is at work: the desired configuration is not in effect yet, or the tunnel is being deleted.", Remedy: "Wait."},
	{Reason: ReasonAccepted, Meaning: "Cloudflare accepts the API token.", Remedy: "Nothing."},
	{Reason: ReasonApplied, Meaning: "The desired configuration is in effect.", Remedy: "Nothing."},
	{Reason: ReasonRetained, Meaning: "The Gateway is gone and its tunnel is retained at Cloudflare, without connectors.",
		Remedy: "Delete the Tunnel object when it is no longer needed."},
	{Reason: ReasonConnectorsReady, Meaning: "The connectors are connected to Cloudflare.", Remedy: "Nothing."},
}

// describe returns the catalogue's entry of a reason.
func describe(reason Reason) Entry {
	for _, entry := range Catalogue {
		if entry.Reason == reason {
			return entry
		}
	}
	return Entry{Reason: reason}
}

// problem returns the problem of a reason with a message of its own.
func problem(reason Reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...), NeedsPerson: describe(reason).NeedsPerson}
}
