package dns

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
)

// finding returns what is reported about the claim. a is nil if nothing is decided: the
// zone cannot be used or is not managed.
func (s *situation) finding(c claim, a *agenda) Finding {
	f := Finding{Verdict: VerdictUnread}
	if s.unusable != "" || s.view != nil {
		f.Verdict = s.verdict(c.hostname.Name, c.party)
	}
	f.Reason, f.Message = s.reason(c, f.Verdict, a)
	if f.Verdict == VerdictUnread {
		return f
	}
	if f.Verdict != VerdictNoZone {
		f.Certificate, f.CertificateMessage = s.certificate(c.hostname.Name)
	}
	return f
}

// reason returns the reason and the message for a hostname with the verdict.
func (s *situation) reason(c claim, v Verdict, a *agenda) (conditions.Reason, string) {
	switch {
	case c.class.rival != "":
		return conditions.ReasonZoneSettingsConflict, "GatewayClass " + c.class.rival + " is older and lists zone " + s.Zone +
			" with other settings. Give both GatewayClasses the same settings in spec.dns and spec.hostnames."
	case v == VerdictUnread:
		return conditions.ReasonForbidden, s.forbiddenMessage()
	case v == VerdictNoZone:
		return conditions.ReasonNoZone, s.noZoneMessage()
	case !canBeLookedUp(c.hostname.Name):
		return conditions.ReasonPending, labelTooLong
	case v == VerdictExternal:
		return conditions.ReasonPublished, ""
	case v == VerdictNotProxied:
		return conditions.ReasonNotProxied, notProxied
	case !c.permitted:
		return conditions.ReasonHostnameNotPermitted, s.notPermittedMessage(c, v)
	}
	return s.recordReason(c, v, a)
}

// recordReason returns the reason for a hostname that may have a record.
func (s *situation) recordReason(c claim, v Verdict, a *agenda) (conditions.Reason, string) {
	switch v {
	case VerdictManaged:
		return s.managedReason(c)
	case VerdictStale:
		return s.staleReason(c, a)
	case VerdictRecordConflict:
		return conditions.ReasonRecordConflict, s.conflictMessage(c)
	case VerdictHeldByAnotherGateway:
		return conditions.ReasonHeldByAnotherGateway, heldByAnother
	default: // VerdictMissing
		return s.missingReason(c, a)
	}
}

const (
	notProxied    = "a record leads to the tunnel, but Cloudflare does not proxy it, so requests do not arrive. Turn on the proxy for the record."
	labelTooLong  = "a label of the hostname has more than 63 characters, so it cannot have a DNS record. Shorten the label."
	heldByAnother = "another Gateway also serves the hostname, and the record leads to that Gateway. Remove the hostname from one of the Gateways."
)

func (s *situation) noZoneMessage() string {
	if s.unusable != "" {
		return s.unusable
	}
	return "NS records delegate the name to other nameservers. Use a hostname that zone " + s.Zone + " does not delegate."
}

// managedReason returns the reason for a record that the controller manages.
func (s *situation) managedReason(c claim) (conditions.Reason, string) {
	r, _ := s.view.set(c.hostname.Name).address()
	switch {
	case r.Proxied:
		return conditions.ReasonPublished, ""
	case s.manages() && c.State == ownership.Accepted && s.Memory.failure.Forbidden() == "":
		return conditions.ReasonPending, "the record is not proxied. The controller repairs it."
	}
	return conditions.ReasonNotProxied, notProxied
}

// staleReason returns the reason for a record of this installation that leads to another
// tunnel.
func (s *situation) staleReason(c claim, a *agenda) (conditions.Reason, string) {
	r, _ := s.view.set(c.hostname.Name).address()
	holder := s.byTarget[target(r)]
	if holder != nil {
		if _, holds := s.claimOf(c.hostname.Name, holder); holds {
			return conditions.ReasonHeldByAnotherGateway, heldByAnother
		}
		if !observes(s.class.Settings) && s.keeps(c.hostname.Name, holder) {
			return conditions.ReasonHeldByAnotherGateway, "the record leads to another Gateway, which the controller has not processed yet, or which is not accepted, paused or blocked. " +
				"The controller moves the record when that Gateway no longer serves the hostname."
		}
	}
	return s.pendingReason(c, a, "the record leads to another tunnel. The controller moves it.",
		"the record leads to another tunnel of this installation. Set dns.mode to Manage, or change the record.")
}

// missingReason returns the reason for a hostname without a record.
func (s *situation) missingReason(c claim, a *agenda) (conditions.Reason, string) {
	if !observes(s.class.Settings) && s.heldByWildcard(c.hostname.Name) {
		return conditions.ReasonPending, "a wildcard leads to another Gateway, which may serve the hostname. The controller creates the record when it knows that this Gateway does not."
	}
	return s.pendingReason(c, a, "the controller creates the record.",
		"no record leads to the Gateway. Create a proxied CNAME record with the target "+c.target+", or set dns.mode to Manage.")
}

// pendingReason returns the reason for a hostname that needs a change: what it waits for.
// The messages are for a change that is under way, and for zones that are only observed.
func (s *situation) pendingReason(c claim, a *agenda, underway, observed string) (conditions.Reason, string) {
	switch {
	case observes(s.class.Settings):
		return conditions.ReasonPending, observed
	case s.Memory.failure.Forbidden() != "":
		return conditions.ReasonForbidden, s.Memory.failure.Forbidden()
	case len(s.Options.Key) == 0:
		return conditions.ReasonPending, "the controller has no key to sign records with. Fix the Secret with the signing key."
	}
	if message := c.notReady(); message != "" {
		return conditions.ReasonPending, message
	}
	if a == nil {
		return conditions.ReasonPending, underway
	}
	if w, ok := a.waiting[c.hostname.Name]; ok && w.change.party == c.party {
		return w.reason, w.message
	}
	if chosen := a.chosen[c.hostname.Name]; chosen != nil && chosen != c.party {
		return conditions.ReasonHeldByAnotherGateway, "another Gateway also serves the hostname, and gets the record. Remove the hostname from one of the Gateways."
	}
	return conditions.ReasonPending, underway
}

// notReady explains why no record is created for the claim because of its Gateway, or
// returns "".
func (c claim) notReady() string {
	switch {
	case c.State == ownership.Unknown:
		return "the controller has not processed the Gateway yet."
	case c.State == ownership.Rejected:
		return "the controller creates no record until the Gateway is accepted."
	case c.State != ownership.Accepted:
		return "the controller changes no record while the Gateway is paused or its Tunnel is blocked."
	case c.target == "" || !c.Connected:
		return "the controller creates the record after a connector has connected to the tunnel."
	case !c.hostname.Served:
		return "the controller creates the record when the tunnel serves a route for the hostname."
	}
	return ""
}

// notPermittedMessage explains that the namespace's annotation does not permit the
// hostname, and what happens to its record.
func (s *situation) notPermittedMessage(c claim, v Verdict) string {
	message := "the annotation " + hostnames.Annotation + " of namespace " + c.hostname.Namespace + " does not permit the hostname, so no record is created for it."
	if v != VerdictManaged {
		return message
	}
	message = "the annotation " + hostnames.Annotation + " of namespace " + c.hostname.Namespace + " does not permit the hostname. "
	switch {
	case observes(s.class.Settings):
		return message + "Its record remains: delete it, or permit the hostname."
	case c.State == ownership.Accepted, c.State == ownership.Rejected:
		return message + "The controller deletes its record after dns.deletionDelay."
	}
	return message + "The controller deletes its record when the Gateway is no longer paused or blocked."
}

// conflictMessage explains a record that leads elsewhere, without its content.
func (s *situation) conflictMessage(c claim) string {
	name, at := c.hostname.Name, ""
	set, found := s.view.answer(name, s.Zone)
	if found != name {
		at = " for " + found
	}
	r, _ := set.address()
	if id := Installation(r.Comment); id != "" && id != s.Options.ClusterID {
		return article(r.Type) + " record" + at + " in zone " + s.Zone + " has the mark of installation " + id + ". Adopt it, delete it, or exclude the hostname."
	}
	return article(r.Type) + " record" + at + " in zone " + s.Zone + " is not managed by this controller. Adopt it, delete it, or exclude the hostname."
}

// article returns the type of a record with its indefinite article.
func article(recordType string) string {
	if recordType == typeCNAME {
		return "a " + recordType
	}
	return "an " + recordType
}

// forbiddenMessage returns why the API token cannot be used, or "".
func (s *situation) forbiddenMessage() string {
	if s.TokenVersion == "" {
		return s.TokenMessage
	}
	return s.Memory.failure.Forbidden()
}
