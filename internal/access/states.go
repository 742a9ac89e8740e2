package access

import (
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Known is what a decision about a Gateway knows about applications. The zero value knows
// nothing, as in a plan of files: each demanded hostname is closed, because its application
// does not exist yet.
type Known struct {
	// Uptime is the time since the process started.
	Uptime time.Duration
	// Read reports whether this process has read the account's applications.
	Read bool
	// Verdicts are those of the last report.
	Verdicts Verdicts
	// Tagged are the applications that issue tokens and have the tag of an installation, by
	// AUD tag: after its key was lost, an installation cannot tell its own ones from others.
	Tagged map[string]*Application
	// Allows are the policies that were last read with the decision "allow" or
	// "non_identity".
	Allows map[provider.AccessPolicyID]bool
	// InEffect is what the rules in effect require, by the hostname of the rule. It is
	// valid only if InEffectKnown.
	InEffect      routing.Access
	InEffectKnown bool
	// Frozen reports whether no protection may end: the Gateway is paused, or its Tunnel
	// is Blocked.
	Frozen bool
	// Exposure is what the process remembers about the Gateway's hostnames.
	Exposure Exposure
}

// Status is what becomes of the requests for a hostname.
type Status string

// The statuses.
const (
	Open      Status = "open"
	Protected Status = "protected"
	Closed    Status = "closed"
)

// State is the state of one hostname.
type State struct {
	Status Status
	// TeamName and AUDTags are the tokens that a protected hostname requires.
	TeamName string
	AUDTags  []string
	// Reason and Message are those of the verdict, as the conditions report them. Reason is
	// [conditions.ReasonProtected] for a protected hostname without a problem, and empty
	// for an open hostname without a demand.
	Reason  conditions.Reason
	Message string
	// Until is the uptime at which the state can change on its own: an open hostname
	// closes, or a protected one opens; 0 if it does not.
	Until time.Duration
	// Application is the application of a demanded hostname as it was last read, or nil.
	Application *Application
	// Namespace accounts for the state: the one for which the demand's application counts.
	Namespace string
	// OneLevel reports whether the hostname is a wildcard. Its application covers one level.
	OneLevel bool
}

// Requirement returns what requests for the hostname require, or nil for nothing.
func (s *State) Requirement() *routing.Requirement {
	switch s.Status {
	case Open:
		if s.Reason != conditions.ReasonPending || s.Until == 0 {
			return nil
		}
		return &routing.Requirement{Waiting: true, Namespace: s.Namespace}
	case Protected:
		return &routing.Requirement{TeamName: s.TeamName, AUDTags: s.AUDTags, OneLevel: s.OneLevel, Namespace: s.Namespace}
	default:
		return &routing.Requirement{Closed: true, Namespace: s.Namespace}
	}
}

// Demanded is what [States] decides about.
type Demanded struct {
	// Demands are the managed demands of the Gateway, by hostname of the table. The
	// application of a hostname below a wildcard can be the one of the wildcard:
	// Demands["a.example.com"].Hostname is then "*.example.com".
	Demands map[string]Demand
	// ByHand are the hostnames of the table that an entry with audTags protects.
	ByHand []string
	// Hostnames are the other hostnames of the table, except the empty one.
	Hostnames []string
	// Unknown reports whether not all demands could be read. No protection ends then.
	Unknown bool
	// Settings are those of the GatewayClass.
	Settings settings.Applications
}

// MaxOpen is how long a hostname that was open stays open while its application or its rule
// is outstanding. It leaves the rest of five minutes to a reconcile that waits for
// Cloudflare, or that is repeated after an error.
const MaxOpen = 4*time.Minute + 30*time.Second

// States returns the state of each demanded hostname, and of each other hostname of the
// table that does not simply follow from the entries: for example, one whose demand has just
// gone. A hostname without a state has that of the wider hostname, or is open.
func States(d Demanded, k Known) map[string]State {
	s := stating{Demanded: &d, Known: &k}
	states := make(map[string]State, len(d.Demands))
	for hostname := range d.Demands {
		demand := d.Demands[hostname]
		states[hostname] = s.demanded(hostname, &demand)
	}
	s.addUndemanded(states)
	for hostname, state := range states {
		if state.Status == Protected && strings.HasPrefix(hostname, "*") {
			state.OneLevel = true
			states[hostname] = state
		}
	}
	return states
}

// stating decides the states.
type stating struct {
	*Demanded
	*Known
}

// demanded returns the state of a hostname with a managed demand.
func (s *stating) demanded(hostname string, d *Demand) State {
	reason, message := s.reason(d)
	verdict, isDecided := s.verdict(d.Hostname)
	application := verdict.Application
	if !isDecided {
		application = s.Exposure.of(hostname).application()
	}
	state := closed(reason, message)
	isOutdated := s.isOutdatedRule(hostname, d, isDecided, application)
	if application != nil {
		isOutdated = isOutdated || s.isOutdated(application, d, reason)
	}
	switch {
	case isOutdated && reason == conditions.ReasonProtected:
		state = closed(conditions.ReasonPending, messageOutdated)
	case isOutdated:
	case isDecided && protects(application, reason):
		state.Status, state.TeamName, state.AUDTags = Protected, application.TeamName, []string{application.AUDTag}
	case s.keepsRule(hostname, d, reason, isDecided, application):
		rule := s.tokenRule(hostname)
		state.Status, state.TeamName, state.AUDTags = Protected, rule.TeamName, rule.AUDTags
	case reason == conditions.ReasonPending:
		state = s.pending(hostname, message)
	case reason == conditions.ReasonProtected: // without an application
		state = closed(conditions.ReasonPending, messageUndecided)
	}
	state.Application, state.Namespace = application, d.Namespace
	return state
}

// protects reports whether the application protects its hostname, even while a change is
// outstanding that is not stricter.
func protects(a *Application, reason conditions.Reason) bool {
	return a != nil && (reason == conditions.ReasonProtected || reason == conditions.ReasonPending)
}

// reason returns why the hostname is not protected, or [conditions.ReasonProtected].
func (s *stating) reason(d *Demand) (conditions.Reason, string) {
	if reason, message := s.problem(d); message != "" {
		return reason, message
	}
	verdict := s.Verdicts[d.Hostname]
	switch {
	case verdict.Reason != conditions.Reason{}:
		return verdict.Reason, verdict.Message // even while the token is not permitted to read
	case !s.Read:
		return conditions.ReasonPending, messageUnread
	default:
		return conditions.ReasonPending, messageUndecided
	}
}

// problem returns a problem with the demand that the account's applications do not
// influence, with a message; the message is empty if there is none.
func (s *stating) problem(d *Demand) (conditions.Reason, string) {
	switch {
	case d.Invalid != nil:
		return d.Invalid.Reason, d.Invalid.Message
	case !s.Settings.AreManaged():
		return conditions.ReasonDisabled, messageDisabled
	case !d.Permitted && !s.Settings.RequiresPermission:
		return conditions.ReasonHostnameNotPermitted, messageNoPermissions
	case !d.Permitted:
		return conditions.ReasonHostnameNotPermitted, messageNotPermitted
	}
	for _, name := range d.Policies {
		if _, ok := s.Settings.Catalogue[name]; !ok {
			return conditions.ReasonPolicyNotFound, "policy " + string(name) + " is not in the catalogue of the GatewayClass. " +
				"Correct the name, or ask the platform team to add the policy to spec.access.policies."
		}
	}
	return conditions.Reason{}, ""
}

// verdict returns the verdict about the hostname; false if nothing was decided yet.
func (s *stating) verdict(hostname string) (Verdict, bool) {
	if !s.Read {
		return Verdict{}, false
	}
	v, ok := s.Verdicts[hostname]
	return v, ok && v.Reason != (conditions.Reason{})
}

// isOutdated reports whether the application may have issued tokens that the demand does not
// admit: it was made for another level or owner, or the demand is stricter. An application
// that lost its tag has no decider.
func (s *stating) isOutdated(a *Application, d *Demand, reason conditions.Reason) bool {
	last, want := a.Last, specOf(d, s.Settings)
	if reason == conditions.ReasonApplicationExists {
		last.Domains = []string{want.Hostname} // it may protect other hostnames, too
	} else if a.Revoking || a.Decider != d.DeciderKey() {
		return true
	}
	return stricter(&last, &want, s.Allows)
}

// isOutdatedRule reports whether the rule in effect demands tokens that the demand may not
// admit, as far as this process has read the application: nothing was decided about the
// demand yet, or it has no application, so that the rule can be that of a wildcard.
func (s *stating) isOutdatedRule(hostname string, d *Demand, isDecided bool, application *Application) bool {
	rule := s.tokenRule(hostname)
	if rule == nil || isDecided && application != nil {
		return false
	}
	want := specOf(d, s.Settings)
	for _, tag := range rule.AUDTags {
		a := s.Tagged[tag]
		if a != nil && (a.Revoking || stricter(&a.Last, &want, s.Allows)) {
			return true
		}
	}
	return false
}

// tokenRule returns what the rule in effect requires if it demands a token, or nil.
func (s *stating) tokenRule(hostname string) *routing.Requirement {
	if !s.InEffectKnown {
		return nil
	}
	if rule := s.InEffect.Of(hostname); rule.DemandsToken() {
		return rule
	}
	return nil
}

// keepsRule reports whether a rule in effect that demands a token stays, although the
// hostname cannot be protected for this reason.
func (s *stating) keepsRule(hostname string, d *Demand, reason conditions.Reason, isDecided bool, a *Application) bool {
	rule := s.tokenRule(hostname)
	if rule == nil || s.Exposure.of(hostname).hasOtherDecider(d) {
		return false
	}
	switch reason {
	case conditions.ReasonPending:
		return !isDecided // what is not known closes nothing that works
	case conditions.ReasonDisabled, conditions.ReasonForbidden, conditions.ReasonSettingsConflict:
		return true
	case conditions.ReasonApplicationExists:
		return a != nil && rule.Admits(a.AUDTag) // it lost its tag
	default:
		return false
	}
}

// pending returns the state of a hostname whose application is outstanding. It is open only
// if this process served it open under this name, and no longer than [MaxOpen]. It does not
// open again after its protection was decided: a lost answer can have put that in effect.
func (s *stating) pending(hostname, message string) State {
	r := s.Exposure.of(hostname)
	if since := r.waitsSince(s.Uptime); r.open && r.held == nil && s.Uptime < since+MaxOpen {
		return State{Status: Open, Reason: conditions.ReasonPending, Message: message, Until: since + MaxOpen}
	}
	return closed(conditions.ReasonPending, message)
}

func closed(reason conditions.Reason, message string) State {
	return State{Status: Closed, Reason: reason, Message: message}
}

// The messages follow the hostname and a colon.
const (
	messageUnmanaged    = "the GatewayClass does not manage applications of Cloudflare Access. "
	messageDisabled     = messageUnmanaged + "Remove the demand, or ask the platform team to set spec.access.applications to Managed."
	messageNotPermitted = "the hostname may not be protected, because the listener's namespace has no permission for it. " +
		"Ask a cluster administrator to add it to the annotation tunnelgateway.dev/hostnames of the namespace."
	messageNoPermissions = "only the GatewayClass can demand protection, because its hostnames.from is not NamespaceAnnotation. Ask the platform team to set it, or to add an entry."
	messageUnread        = "the controller has not read the account's applications yet."
	messageUndecided     = "the application does not exist yet."
	messageOutdated      = "tokens that were issued before the last change are still to be revoked."
	messageEnding        = "protection is no longer demanded. The hostname opens after spec.access.openingDelay."
	messageHeld          = "protection is no longer demanded, but it does not end while the Gateway is paused or its demands cannot be read."
)
