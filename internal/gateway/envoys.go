package gateway

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// Envoys is the state of the Envoy proxies of a Gateway. The first row that applies
// determines the DataPlaneReady condition:
//
//	state                                 condition
//	the Gateway is not accepted           current condition, else False Pending
//	not Published                         current condition, else False Pending
//	Rejected                              False EnvoyRejected
//	Starting                              False Pending, or current condition without Progress
//	Connected is 0, not Known             current condition, else False Pending
//	Connected is 0, Wanted is not         False Disconnected
//	Excess                                False LimitExceeded
//	Late                                  False Pending
//	Connected is not 0, not Acknowledged  current condition if it is True and no pending Access, else False Pending
//	pending Access                        False Pending
//	otherwise                             True Ready
//
// A current condition keeps its generation, because it does not describe a newer one.
//
// The first row that applies determines the Programmed condition of an accepted Gateway:
//
//	state                                 Programmed
//	Starting                              as with ingress rules
//	the tunnel has no configuration       as with ingress rules
//	Acknowledged                          True
//	not Published                         current condition, else False Pending
//	Rejected, and Programmed is not True  False EnvoyRejected
//	Rejected                              current condition, which is True
//	Connected is 0, Known                 True
//	otherwise                             current condition, else False Pending
//
// For Programmed, a current condition counts only if it is for this generation. Listeners
// and ListenerSets follow with the reason Pending instead of EnvoyRejected, and
// ListenerSets do not become Programmed while Envoy rejects the configuration. Only
// DataPlaneReady contains the error of a rejection, because it can name objects of other
// tenants.
type Envoys struct {
	// Connected counts the Envoys that are connected to the controller, and Wanted is the
	// desired number of connectors.
	Connected, Wanted int
	// Known reports whether a Connected value of 0 means that no Envoy is connected. It
	// is false while the Envoys may not have connected to a new leader yet.
	Known bool
	// Published reports whether this leader has published a configuration.
	Published bool
	// Acknowledged reports whether every connected Envoy has acknowledged a configuration
	// with the present listeners on the Gateway and its ListenerSets. Later route changes
	// do not unset it.
	Acknowledged bool
	// Late reports whether a connected Envoy takes unusually long to acknowledge the last
	// configuration.
	Late bool
	// Rejected is the error with which an Envoy rejected the current configuration, cut
	// short; empty if no Envoy did.
	Rejected string
	// Access are the hostnames whose new Access settings wait for Cloudflare.
	Access PendingAccess
	// Starting reports whether the Gateway changes to Envoy, while its ingress rules still
	// serve it. Progress describes what the change waits for; it is empty if unknown.
	Starting bool
	Progress string
	// Excess is why a change to ingress rules cannot begin; see [Result.Excess]. It is empty
	// when the settings ask for Envoy, or the rules are within the limits.
	Excess string
}

const (
	messageAcknowledgementPending = "The tunnel's configuration is in effect. The controller waits until every connected Envoy has acknowledged its configuration."
	messageEnvoyRejected          = "Envoy rejected the first configuration for this Gateway generation. See the Gateway's tunnelgateway.dev/DataPlaneReady condition."
)

// pushes returns the attempts that Programmed reports on the Gateway and on its ListenerSets.
func (r *Result) pushes(o Outcome) (onGateway, onSets Push) {
	if o.Envoys == nil || o.Envoys.Starting || o.Push.State != PushSucceeded {
		return o.Push, o.Push
	}
	return o.Envoys.pushes(o.Push, r.currentProgrammed())
}

// pushes returns what an attempt that succeeded means for each object. current is the
// Programmed condition of the Gateway for its generation, or nil.
func (e *Envoys) pushes(succeeded Push, current *metav1.Condition) (onGateway, onSets Push) {
	waiting := Push{State: pushUnacknowledged, Message: messageAcknowledgementPending}
	rejected := Push{State: PushFailed, Reason: conditions.ReasonEnvoyRejected, Message: messageEnvoyRejected}
	programmed := current != nil && current.Status == metav1.ConditionTrue
	switch {
	case e.Acknowledged && e.Rejected != "":
		return succeeded, waiting // the rejected configuration can be the first with a ListenerSet
	case e.Acknowledged:
		return succeeded, succeeded
	case e.Published && e.Rejected != "" && !programmed:
		return rejected, rejected
	case e.hasNone():
		return succeeded, succeeded
	case conditions.ReasonEnvoyRejected.Is(current):
		return rejected, waiting // no Envoy has acknowledged another configuration
	default:
		return waiting, waiting
	}
}

// hasNone reports whether a published configuration has no Envoy that could reject it.
func (e *Envoys) hasNone() bool {
	return e.Published && e.Rejected == "" && e.Connected == 0 && e.Known
}

// currentProgrammed returns the Gateway's current Programmed condition if it is for its
// generation, or nil. If it is True, a rejected configuration is not the first one, even
// if this leader has published no other.
func (r *Result) currentProgrammed() *metav1.Condition {
	c := conditions.TypeProgrammed.Find(r.gateway.Status.Conditions)
	if c == nil || c.ObservedGeneration != r.gateway.Generation {
		return nil
	}
	return c
}

// setDataPlaneReady adds the DataPlaneReady condition; see [Envoys].
func (c *conditionList) setDataPlaneReady(e *Envoys, accepted bool, current []metav1.Condition) {
	switch {
	case !accepted:
		c.keepDataPlaneReady(current, "The Gateway is not accepted, so the controller does not change the Envoy configuration.")
	case !e.Published:
		c.keepDataPlaneReady(current, "The controller has not published the configuration to Envoy yet.")
	case e.Rejected != "":
		c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonEnvoyRejected, e.describeRejected())
	case e.Starting:
		c.setStarting(e, current)
	case e.Connected == 0 && !e.Known:
		c.keepDataPlaneReady(current, "The controller waits until Envoy connects.")
	case e.Connected == 0 && e.Wanted > 0:
		c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonDisconnected, "No Envoy is connected to the controller: running connectors keep serving their last configuration, but changes do not take effect. "+
			"Check that the connector pods run and can connect to the controller's xDS Service.")
	case e.Excess != "":
		c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonLimitExceeded, e.Excess)
	default:
		c.setAcknowledged(e, current)
	}
}

// setStarting adds the DataPlaneReady condition for a Gateway that changes to Envoy.
func (c *conditionList) setStarting(e *Envoys, current []metav1.Condition) {
	if e.Progress == "" {
		c.keepDataPlaneReady(current, "The change to Envoy has begun. The ingress rules serve the Gateway until the change is complete.")
		return
	}
	c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonPending, e.Progress)
}

// setAcknowledged adds the DataPlaneReady condition for a configuration that Envoys can have
// acknowledged.
func (c *conditionList) setAcknowledged(e *Envoys, current []metav1.Condition) {
	isWaiting := e.Connected > 0 && !e.Acknowledged
	switch {
	case e.Late:
		c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonPending, "A connected Envoy has not acknowledged the last configuration within five seconds. Check the connector pods.")
	case isWaiting && !e.Access.exists() && conditions.TypeDataPlaneReady.IsTrue(current):
		c.keepDataPlaneReady(current, "") // an Envoy has just connected, or the listeners have changed
	case isWaiting:
		c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonPending, "The controller waits until every connected Envoy has acknowledged the configuration for this generation.")
	case e.Access.exists():
		c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonPending, e.Access.describe())
	default:
		c.set(conditions.TypeDataPlaneReady, true, conditions.ReasonReady, e.describeReady())
	}
}

// keepDataPlaneReady adds the current condition with its own generation. Without a current
// condition, it adds a pending one with the message.
func (c *conditionList) keepDataPlaneReady(current []metav1.Condition, message string) {
	existing := conditions.TypeDataPlaneReady.Find(current)
	if existing == nil {
		c.set(conditions.TypeDataPlaneReady, false, conditions.ReasonPending, message)
		return
	}
	kept := *existing
	kept.LastTransitionTime = metav1.Time{}
	c.list = append(c.list, kept)
}

func (e *Envoys) describeRejected() string {
	effect := "only an earlier configuration can be in effect"
	if e.Starting {
		effect = "the ingress rules keep serving the Gateway"
	}
	return fmt.Sprintf("Envoy rejected the current configuration, so %s. Report the error as a bug in the controller: %s", effect, e.Rejected)
}

func (e *Envoys) describeReady() string {
	switch {
	case e.Connected == 0:
		return "No connector is desired, so no Envoy needs a configuration."
	case e.Connected < e.Wanted:
		return fmt.Sprintf("Every connected Envoy has acknowledged the configuration. %d of %d Envoys are connected.", e.Connected, e.Wanted)
	default:
		return "Every connected Envoy has acknowledged the configuration."
	}
}

// PendingAccess are hostnames whose new Access settings are not in effect yet.
type PendingAccess struct {
	// Hostnames are, sorted, the rule hostnames that Cloudflare does not have yet.
	Hostnames []string
	// Kept are, in order, the hostnames that Envoy still serves without their Access
	// settings, and Closed the hostnames for which it returns 403.
	Kept, Closed []string
}

func (p *PendingAccess) exists() bool { return len(p.Hostnames)+len(p.Kept)+len(p.Closed) > 0 }

func (p *PendingAccess) describe() string {
	change := "A change to Access settings"
	if len(p.Hostnames) > 0 {
		change = "The change to Access settings for " + listHostnames(p.Hostnames)
	}
	text := change + " is not in effect yet, because Cloudflare has not acknowledged it."
	kept := listHostnames(p.Kept) + " without Access for at most five minutes"
	switch {
	case len(p.Kept) > 0 && len(p.Closed) > 0:
		return fmt.Sprintf("%s Until then, Envoy returns 403 for %s, and serves %s.", text, listHostnames(p.Closed), kept)
	case len(p.Kept) > 0:
		return fmt.Sprintf("%s Until then, Envoy serves %s, and then returns 403.", text, kept)
	case len(p.Closed) > 0:
		return fmt.Sprintf("%s Until then, Envoy returns 403 for %s.", text, listHostnames(p.Closed))
	default:
		return text + " The previous Access settings stay in effect until then."
	}
}

// listHostnames lists at most five hostnames. The message has three such lists.
func listHostnames(hostnames []string) string {
	return describeItems(message.List{MaxItems: 5, MaxSize: message.MaxSize / 4}, hostnames)
}
