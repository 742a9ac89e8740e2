package tunnel

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
	// EventTunnelLost tells that somebody else deleted the tunnel.
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

// Event is a notification on the Gateway, or on the Tunnel when the Gateway is
// gone.
type Event struct {
	Reason  EventReason
	Warning bool
	Message string
}
