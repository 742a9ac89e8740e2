package tunnel

import "fmt"

// Reason is the reason of a problem, or of a condition that reports no problem. Conditions
// and the labels of metrics use it.
type Reason string

// The reasons of problems. [Catalogue] describes them.
const (
	ReasonSettingsNotApplied     Reason = "SettingsNotApplied"
	ReasonObjectMismatch         Reason = "ObjectMismatch"
	ReasonOtherCluster           Reason = "OtherCluster"
	ReasonNewerVersion           Reason = "NewerVersion"
	ReasonTunnelInUse            Reason = "TunnelInUse"
	ReasonNameReserved           Reason = "NameReserved"
	ReasonTunnelMissing          Reason = "TunnelMissing"
	ReasonLocallyManaged         Reason = "LocallyManaged"
	ReasonTakeoverRequired       Reason = "TakeoverRequired"
	ReasonContested              Reason = "Contested"
	ReasonConfigurationRejected  Reason = "ConfigurationRejected"
	ReasonConfigurationThrottled Reason = "ConfigurationThrottled"
	ReasonCredentialsMissing     Reason = "CredentialsMissing"
	ReasonWrongAccount           Reason = "WrongAccount"
	ReasonUnauthorized           Reason = "Unauthorized"
	ReasonRateLimited            Reason = "RateLimited"
	ReasonUnavailable            Reason = "CloudflareUnavailable"
	ReasonPaused                 Reason = "Paused"
	ReasonGatewayMissing         Reason = "GatewayMissing"
	ReasonGatewayUnknown         Reason = "GatewayUnknown"
	ReasonDeletionPending        Reason = "DeletionPending"
	ReasonConnectorsStopping     Reason = "ConnectorsStopping"
	ReasonConnectorsConnected    Reason = "ConnectorsConnected"
	ReasonPrivateRoutes          Reason = "PrivateRoutes"
	ReasonObjectTaken            Reason = "ObjectTaken"
	ReasonConnectorsFailed       Reason = "ConnectorsFailed"
	ReasonTokenFailed            Reason = "TokenFailed"
	ReasonRotationBlocked        Reason = "RotationBlocked"
	ReasonLimitExceeded          Reason = "LimitExceeded"
	ReasonDataPlaneBlocked       Reason = "DataPlaneBlocked"
	ReasonKubernetes             Reason = "KubernetesUnavailable"
	ReasonFailed                 Reason = "Failed"
)

// The reasons of conditions that report no problem. [States] describes them.
const (
	ReasonServing           Reason = "Serving"
	ReasonPending           Reason = "Pending"
	ReasonAccepted          Reason = "Accepted"
	ReasonApplied           Reason = "Applied"
	ReasonRetained          Reason = "Retained"
	ReasonConnectorsReady   Reason = "Ready"
	ReasonDataPlaneChanging Reason = "DataPlaneChanging"
)

// Problem describes why a tunnel is not in the desired state.
type Problem struct {
	Reason Reason
	// Message describes what is wrong, where, and what to do.
	Message string
	// RequiresAction reports whether the problem remains until a user acts.
	RequiresAction bool
}

// Entry describes a reason in the catalogue.
type Entry struct {
	Reason Reason
	// Meaning describes what is wrong.
	Meaning string
	// Remedy describes what to do.
	Remedy string
	// RequiresAction reports whether the problem remains until a user acts.
	RequiresAction bool
}

// Catalogue describes the reasons of problems, in the order of the documentation.
// Conditions, metrics and the documentation use it.
var Catalogue = []Entry{
	{ReasonSettingsNotApplied, "The settings select a different account, name or existing tunnel than the Tunnel records. The recorded tunnel keeps serving.",
		"Restore the setting. To switch, delete the Tunnel object, which interrupts the traffic; the old tunnel stays at Cloudflare.", true},
	{ReasonObjectMismatch, "The Tunnel object with the name of this Gateway belongs to another Gateway or controller, so the controller does not use it.",
		"Delete the Tunnel object.", true},
	{ReasonOtherCluster, "The Tunnel object was created in another cluster, for example because it was restored from a backup. The controller does not change its tunnel.",
		"Delete the Tunnel object if this cluster replaces the other cluster.", true},
	{ReasonNewerVersion, "A newer version of the controller serves the tunnel, by a schema that this version does not support. This version changes neither the tunnel nor its connectors, and their Envoys keep their routes.",
		"Run the newer version again, or follow Roll back in docs/upgrade.md to stay on this version.", true},
	{ReasonTunnelInUse, "Another Gateway uses the tunnel that tunnel.existing.id names.",
		"Set tunnel.existing.id to another tunnel.", true},
	{ReasonNameReserved, "The tunnel that tunnel.existing.id names was created for another Gateway.",
		"Set tunnel.existing.id to another tunnel.", true},
	{ReasonTunnelMissing, "The tunnel that tunnel.existing.id names does not exist in the account.",
		"Correct the ID, or remove tunnel.existing and delete the Tunnel object.", true},
	{ReasonLocallyManaged, "The tunnel is locally managed: its connectors read their configuration from a file. The controller does not configure, delete or connect to it.",
		"Migrate the tunnel to remote management in the Cloudflare dashboard. If it only has the same name as this Gateway's tunnel, rename it.", true},
	{ReasonTakeoverRequired, "The adopted tunnel has a configuration that this controller did not write.",
		"Set tunnel.existing.takeover in the TunnelConfiguration of the GatewayClass.", true},
	{ReasonContested, "External changes keep replacing the configuration of the tunnel, so the controller has stopped writing it.",
		"Stop the other writer, then pause the Gateway and resume it.", true},
	{ReasonConfigurationRejected, "Cloudflare rejected the configuration.",
		"Report the message as a bug in the controller.", false},
	{ReasonConfigurationThrottled, "The configuration changes more often than limits.configurationUpdates of the GatewayClass permits. The tunnel keeps its last configuration until the time in the message.",
		"Find the object that keeps changing: the ConfigurationThrottled event on the Gateway names its namespace.", false},
	{ReasonCredentialsMissing, "The API token for the account of the tunnel is missing.",
		"Create the Secret with the API token.", true},
	{ReasonWrongAccount, "The controller's API token does not belong to the account of the tunnel, and the Tunnel refers to no Secret.",
		"Set spec.account in the TunnelConfiguration of the GatewayClass to a Secret with a token for the account.", true},
	{ReasonUnauthorized, "Cloudflare rejects the API token.",
		"Give the token the permission Cloudflare Tunnel: Edit for the account, or replace it.", false},
	{ReasonRateLimited, "The controller has reached the rate limit of the Cloudflare API.",
		"Wait. If the problem recurs, check which other clients use the API as the same Cloudflare user.", false},
	{ReasonUnavailable, "The Cloudflare API is unavailable or returns unexpected responses.",
		"Wait. If the problem persists, check the network path to the API.", false},
	{ReasonPaused, "The Gateway is paused, so the controller changes nothing at Cloudflare.",
		"Remove the annotation tunnelgateway.dev/paused. If the Gateway is gone, set spec.paused of the Tunnel to false, or its spec.deletionPolicy to Retain.", true},
	{ReasonGatewayMissing, "The Gateway is gone. The tunnel keeps serving until the retirement delay has passed.",
		"Nothing. To keep the tunnel, create the Gateway again.", false},
	{ReasonGatewayUnknown, "The controller cannot determine whether the Gateway exists. The tunnel keeps serving.",
		"Check the controller's permissions, the CRDs of the Gateway API and the GatewayClass.", false},
	{ReasonDeletionPending, "The controller is deleting the tunnel of a previous Gateway with this name.",
		"Wait.", false},
	{ReasonConnectorsStopping, "The connectors are stopping.",
		"Wait.", false},
	{ReasonConnectorsConnected, "Connectors that this controller does not run are connected to the tunnel, so the controller cannot delete it.",
		"Stop those connectors, or set spec.deletionPolicy of the Tunnel to Retain.", true},
	{ReasonPrivateRoutes, "Private network routes point to the tunnel, so Cloudflare does not delete it.",
		"Remove the routes in the Cloudflare dashboard, or set spec.deletionPolicy of the Tunnel to Retain.", true},
	{ReasonObjectTaken, "An object with the name of the connector objects exists, but does not belong to the Tunnel.",
		"Delete or rename that object.", true},
	{ReasonConnectorsFailed, "The controller could not write the objects of the connectors.",
		"Fix the cause in the message, which contains the error of the API server.", false},
	{ReasonTokenFailed, "The controller could not read the token of the tunnel from Cloudflare or write it to its Secret.",
		"Fix the cause in the message.", false},
	{ReasonRotationBlocked, "The controller cannot rotate the token now.",
		"Fix the cause in the message.", true},
	{ReasonLimitExceeded, "The settings ask for ingress rules, but the routes exceed the limits of ingress rules. The change of the data plane does not begin, and Envoy keeps serving.",
		"Remove routes or raise the limit that the message names, or set dataPlane to Envoy again.", true},
	{ReasonDataPlaneBlocked, "The data plane cannot change to Envoy: connectors that this controller does not run are connected to the tunnel, or Envoy rejects the configuration. The ingress rules keep serving.",
		"Stop those connectors. If Envoy rejects the configuration, set dataPlane to IngressRules again and report the message as a bug in the controller.", true},
	{ReasonKubernetes, "The Kubernetes API server rejected a request or did not respond.",
		"Check the controller's permissions.", false},
	{ReasonFailed, "A step failed.", "Fix the cause in the message.", false},
}

// States describes the reasons of a Tunnel's conditions that report no problem, in the
// order of the documentation.
var States = []Entry{
	{Reason: ReasonServing, Meaning: "The tunnel serves its Gateway.", Remedy: "Nothing."},
	{Reason: ReasonPending, Meaning: "The desired configuration is not in effect yet, or the controller is deleting the tunnel.", Remedy: "Wait."},
	{Reason: ReasonAccepted, Meaning: "Cloudflare accepts the API token.", Remedy: "Nothing."},
	{Reason: ReasonApplied, Meaning: "The desired configuration is in effect, or the data plane of the settings serves the Gateway.", Remedy: "Nothing."},
	{Reason: ReasonDataPlaneChanging, Meaning: "The data plane changes, and the previous data plane serves the Gateway until the change is complete. The message states what the change waits for.",
		Remedy: "Wait. If the message names a pod that is not ready, fix the pod."},
	{Reason: ReasonRetained, Meaning: "The Gateway is gone and its tunnel is retained at Cloudflare, without connectors.",
		Remedy: "When you no longer need the tunnel, delete the Tunnel object."},
	{Reason: ReasonConnectorsReady, Meaning: "The connectors are connected to Cloudflare.", Remedy: "Nothing."},
}

// describe returns the catalogue entry of a reason.
func describe(reason Reason) Entry {
	for _, entry := range Catalogue {
		if entry.Reason == reason {
			return entry
		}
	}
	return Entry{Reason: reason}
}

// problem returns a problem with the reason and the message.
func problem(reason Reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...), RequiresAction: describe(reason).RequiresAction}
}

// RequiresAction reports whether a problem with the reason remains until a user acts.
func RequiresAction(reason Reason) bool { return describe(reason).RequiresAction }
