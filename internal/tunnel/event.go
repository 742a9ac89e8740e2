package tunnel

import "fmt"

// EventReason names an event.
type EventReason string

// The events about tunnels.
const (
	// EventTunnelCreated tells that a tunnel was created.
	EventTunnelCreated EventReason = "TunnelCreated"
	// EventTunnelFound tells that a tunnel of the Gateway's name was found.
	EventTunnelFound EventReason = "TunnelFound"
	// EventTunnelAdopted tells that an existing tunnel was adopted.
	EventTunnelAdopted EventReason = "TunnelAdopted"
	// EventTunnelLost tells that the tunnel was deleted, and not by the controller.
	EventTunnelLost EventReason = "TunnelLost"
	// EventTunnelResumed tells that the Gateway has returned before its tunnel was
	// deleted.
	EventTunnelResumed EventReason = "TunnelResumed"
	// EventTunnelRetiring tells that the Gateway is gone and the tunnel retires.
	EventTunnelRetiring EventReason = "TunnelRetiring"
	// EventTunnelDeleted tells that the tunnel was deleted at Cloudflare.
	EventTunnelDeleted EventReason = "TunnelDeleted"
	// EventTakenOver tells that the configuration of an adopted tunnel is replaced.
	EventTakenOver EventReason = "TakenOver"
	// EventDriftRepaired tells that an external change is reverted.
	EventDriftRepaired EventReason = "DriftRepaired"
	// EventDriftContested tells that there were too many external changes.
	EventDriftContested EventReason = "DriftContested"
	// EventHTTP2 tells that the connectors use HTTP/2 from now on.
	EventHTTP2 EventReason = "ConnectorProtocol"
	// EventTokenRotated tells that the token was rotated.
	EventTokenRotated EventReason = "TokenRotated"
)

// EventEntry describes an event in the catalogue.
type EventEntry struct {
	Reason EventReason
	// Warning is whether the event is a warning.
	Warning bool
	// Meaning says what has happened.
	Meaning string
	// Remedy says what to do.
	Remedy string
}

// Events describes every event about tunnels, in the order in which the
// documentation lists them.
var Events = []EventEntry{
	{EventTunnelCreated, false, "The controller created the tunnel of the Gateway. The message has its name and ID.",
		"Point proxied CNAME records at the address in the Gateway's status."},
	{EventTunnelFound, false, "A tunnel with the name of the Gateway's tunnel exists. The controller uses it and replaces its configuration.",
		"Nothing, unless another installation with the same cluster ID is running; then change one of the two IDs."},
	{EventTunnelAdopted, false, "The Gateway uses the tunnel that tunnel.existing.id names from now on.",
		"Nothing."},
	{EventTunnelLost, true, "The tunnel was deleted at Cloudflare, and not by the controller. The controller creates a new tunnel with a new address.",
		"Point the CNAME records at the new address. The audit log of the Cloudflare account shows who deleted the tunnel."},
	{EventTunnelResumed, false, "The Gateway returned after the deletion of its tunnel had begun. The tunnel was not deleted and serves the Gateway again.",
		"Nothing."},
	{EventTunnelRetiring, false, "The Gateway is gone, so the controller stops the connectors and deletes the tunnel, or retains it.",
		"Nothing."},
	{EventTunnelDeleted, false, "The controller deletes the tunnel at Cloudflare.",
		"Remove the CNAME records that point at it."},
	{EventTakenOver, false, "The controller replaces the configuration of an adopted tunnel, because tunnel.existing.takeover permits it.",
		"Nothing."},
	{EventDriftRepaired, true, "The configuration of the tunnel was changed outside the controller, and the controller reverts the change. The message lists the differences.",
		"Change the Gateway or its routes instead. Pause the Gateway to keep a change for a while."},
	{EventDriftContested, true, "The configuration of the tunnel was changed three times within ten minutes outside the controller, which stops writing it.",
		"Find the other writer, then pause the Gateway and resume it."},
	{EventHTTP2, false, "The Gateway has a GRPCRoute, so its connectors use HTTP/2 from now on.",
		"Nothing."},
	{EventTokenRotated, false, "The token of the tunnel was rotated, and connectors with the old token were disconnected.",
		"Nothing."},
}

// newEvent returns the event of a reason with a message of its own.
func newEvent(reason EventReason, format string, args ...any) *Event {
	e := &Event{Reason: reason, Message: fmt.Sprintf(format, args...)}
	for _, entry := range Events {
		if entry.Reason == reason {
			e.Warning = entry.Warning
		}
	}
	return e
}

// Event is a notification on the Gateway, or on the Tunnel when the Gateway is
// gone.
type Event struct {
	Reason  EventReason
	Warning bool
	Message string
}
