package tunnel

import "fmt"

// EventReason is the reason of an event.
type EventReason string

// The reasons of events about tunnels.
const (
	// EventTunnelCreated reports that a tunnel was created.
	EventTunnelCreated EventReason = "TunnelCreated"
	// EventTunnelFound reports that a tunnel with the name of the Gateway's tunnel was found.
	EventTunnelFound EventReason = "TunnelFound"
	// EventTunnelAdopted reports that an existing tunnel was adopted.
	EventTunnelAdopted EventReason = "TunnelAdopted"
	// EventTunnelLost reports that another client deleted the tunnel.
	EventTunnelLost EventReason = "TunnelLost"
	// EventTunnelResumed reports that the Gateway returned before its tunnel was
	// deleted.
	EventTunnelResumed EventReason = "TunnelResumed"
	// EventTunnelRetiring reports that the Gateway is gone and the tunnel retires.
	EventTunnelRetiring EventReason = "TunnelRetiring"
	// EventTunnelDeleted reports that the controller deletes the tunnel at Cloudflare.
	EventTunnelDeleted EventReason = "TunnelDeleted"
	// EventTakenOver reports that the controller replaces the configuration of an
	// adopted tunnel.
	EventTakenOver EventReason = "TakenOver"
	// EventDriftRepaired reports that the controller reverts an external change.
	EventDriftRepaired EventReason = "DriftRepaired"
	// EventDriftContested reports that the configuration is contested: there were too
	// many external changes.
	EventDriftContested EventReason = "DriftContested"
	// EventConfigurationThrottled reports that too many changes of the configuration make each
	// change wait.
	EventConfigurationThrottled EventReason = "ConfigurationThrottled"
	// EventHTTP2 reports that the connectors now use HTTP/2.
	EventHTTP2 EventReason = "ConnectorProtocol"
	// EventTokenRotated reports that the token was rotated.
	EventTokenRotated EventReason = "TokenRotated"
	// EventDataPlaneChanging reports that a change of the data plane has begun.
	EventDataPlaneChanging EventReason = "DataPlaneChanging"
	// EventDataPlaneChanged reports that a change of the data plane has ended.
	EventDataPlaneChanged EventReason = "DataPlaneChanged"
	// EventDataPlaneReversed reports that a change of the data plane was reversed before its
	// end.
	EventDataPlaneReversed EventReason = "DataPlaneReversed"
)

// EventEntry describes an event in the catalogue.
type EventEntry struct {
	Reason EventReason
	// Warning reports whether the event is a warning.
	Warning bool
	// Meaning describes what happened.
	Meaning string
	// Remedy describes what to do.
	Remedy string
}

// Events is the catalogue of events about tunnels, in the order of the documentation.
var Events = []EventEntry{
	{EventTunnelCreated, false, "The controller created the tunnel of the Gateway. The message contains its name and ID.",
		"Create proxied CNAME records that point to the address in the Gateway's status."},
	{EventTunnelFound, false, "A tunnel with the name of the Gateway's tunnel exists. The controller uses it and replaces its configuration.",
		"Nothing. If another installation uses the same cluster ID, change one of the two IDs."},
	{EventTunnelAdopted, false, "The Gateway now uses the tunnel that tunnel.existing.id names.",
		"Nothing."},
	{EventTunnelLost, true, "Another client deleted the tunnel at Cloudflare. The controller creates a new tunnel, which has a new address.",
		"Change the CNAME records to the new address. The audit log of the Cloudflare account shows who deleted the tunnel."},
	{EventTunnelResumed, false, "The Gateway was created again after the deletion of its tunnel had begun. The tunnel was not deleted and serves the Gateway again.",
		"Nothing."},
	{EventTunnelRetiring, false, "The Gateway is gone, so the controller stops the connectors. It then deletes the tunnel or retains it, depending on the deletion policy.",
		"Nothing."},
	{EventTunnelDeleted, false, "The controller deletes the tunnel at Cloudflare.",
		"Delete the CNAME records that point to the tunnel."},
	{EventTakenOver, false, "The controller replaces the configuration of an adopted tunnel, because tunnel.existing.takeover permits it.",
		"Nothing."},
	{EventDriftRepaired, true, "Another client changed the configuration of the tunnel, and the controller reverts the change. The message lists the differences.",
		"Change the Gateway or its routes instead. To keep an external change temporarily, pause the Gateway."},
	{EventDriftContested, true, "Other clients changed the configuration of the tunnel three times within ten minutes, so the controller stops writing it.",
		"Stop the other writer, then pause the Gateway and resume it."},
	{EventConfigurationThrottled, true, "The configuration changes more often than limits.configurationUpdates of the GatewayClass permits, so every change waits. The message names the namespaces whose objects changed most often, with their numbers of writes. The event repeats every ten minutes.",
		"Find the controller or user that keeps changing objects in that namespace, and stop it."},
	{EventHTTP2, false, "The Gateway has a GRPCRoute, so its connectors now use HTTP/2.",
		"Nothing."},
	{EventTokenRotated, false, "The controller rotated the token of the tunnel, and disconnected the connectors with the old token.",
		"Nothing."},
	{EventDataPlaneChanging, false, "The settings select another data plane, and the controller has begun to change to it. No request fails during the change.",
		"Nothing. The DataPlaneApplied condition of the Tunnel describes what the change waits for."},
	{EventDataPlaneChanged, false, "The change of the data plane is complete.",
		"Nothing."},
	{EventDataPlaneReversed, false, "The controller reverses a change of the data plane that is not complete, because the settings select the previous data plane again, or because the routes now exceed the limits of ingress rules.",
		"Nothing, unless the DataPlaneApplied condition of the Tunnel is False with the reason LimitExceeded."},
}

// newEvent returns an event with the reason and the message.
func newEvent(reason EventReason, format string, args ...any) *Event {
	e := &Event{Reason: reason, Message: fmt.Sprintf(format, args...)}
	for _, entry := range Events {
		if entry.Reason == reason {
			e.Warning = entry.Warning
		}
	}
	return e
}

// Event is an event about a tunnel. Its object is the Gateway, or the Tunnel if the Gateway
// is gone.
type Event struct {
	Reason  EventReason
	Warning bool
	Message string
}
