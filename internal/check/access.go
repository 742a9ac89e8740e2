package check

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// accessStep checks whether the host requires a token of Cloudflare Access, and what an
// anonymous request gets.
func accessStep(e Expectation, v visits) Step {
	var f findings
	isNotClosed := func(g ServingGateway) bool { return !g.Closed }
	if len(e.Gateways) > 0 && !slices.ContainsFunc(e.Gateways, isNotClosed) {
		f.closed(e.Gateways[0], v.anonymous)
		return newStep(StepAccess, f)
	}
	f.requirement(e, v.anonymous)
	f.applications(e)
	if e.Unlisted && len(e.Gateways) > 0 {
		f.add(Unknown, "Gateways and ListenerSets that you cannot read can claim the hostname, with or without a token.")
	}
	return newStep(StepAccess, f)
}

// requirement reports whether the host requires a token, unless it is closed. anonymous is nil
// if no request was sent.
func (f *findings) requirement(e Expectation, anonymous *probe.Answer) {
	isProtected := func(g ServingGateway) bool { return g.Protected }
	isOpen := func(g ServingGateway) bool { return !g.Protected && !g.Closed }
	isManaged := func(g ServingGateway) bool { return g.AccessResult != "" }
	protected, open := slices.ContainsFunc(e.Gateways, isProtected), slices.ContainsFunc(e.Gateways, isOpen)
	switch {
	case len(e.Gateways) == 0 && e.Incomplete:
		f.add(Unknown, "Not checked, because no Gateway that you can read serves the hostname.")
	case len(e.Gateways) == 0:
		f.add(Unknown, "Not checked, because no Gateway is known to serve the hostname.")
	case protected && open:
		f.add(Unknown, "Some of the Gateways require a Cloudflare Access token and others do not. The record decides which one gets the request.")
	case protected:
		f.protected(anonymous, slices.ContainsFunc(e.Gateways, isManaged))
	default:
		f.open(anonymous)
	}
}

// applications reports what the statuses say about managed applications.
func (f *findings) applications(e Expectation) {
	for _, g := range e.Gateways {
		if g.AccessResult != "" && g.AccessResult != OK {
			f.add(g.AccessResult, "Gateway %s/%s: %s", g.Namespace, g.Name, g.AccessMessage)
		}
	}
}

// closed reports about a host that must be protected and is not. anonymous is nil if no
// request was sent.
func (f *findings) closed(g ServingGateway, anonymous *probe.Answer) {
	f.add(Failed, "Closed: Cloudflare Access must protect the hostname, and no application does. %s", g.AccessMessage)
	f.advise("To see what demands the protection: kubectl tunnel-gateway plan --why HOST")
	switch {
	case anonymous == nil || anonymous.Responder == "":
	case anonymous.Responder == probe.Access, refuses(anonymous):
		f.add(OK, "A request is refused, with status %d.", anonymous.Status)
	default:
		f.add(Failed, "A request is answered with status %d by %s, although the hostname is closed.", anonymous.Status, nameOfResponder(*anonymous))
		f.advise("Treat the hostname as public. Check in the step objects whether the configuration is in effect, and in the step dns where the record leads.")
	}
}

// open reports about a host that requires no token.
func (f *findings) open(anonymous *probe.Answer) {
	if anonymous != nil && anonymous.Responder == probe.Access {
		f.add(Warning, "The Gateway requires no Cloudflare Access token, but an Access application at Cloudflare covers the hostname. %s", anonymous.Meaning)
		f.advise("Remove the application, or require its token in the TunnelConfiguration (listenerConfigurations). Otherwise, nothing checks requests that bypass the application.")
		return
	}
	f.add(OK, "Open: no Cloudflare Access token is required.")
}

// protected reports about a host that requires a token. anonymous is nil if no request was
// sent. managed reports whether the controller manages the application.
func (f *findings) protected(anonymous *probe.Answer, managed bool) {
	f.add(OK, "Protected: requests need a Cloudflare Access token.")
	switch {
	case anonymous == nil:
	case anonymous.Responder == probe.Access:
		f.add(OK, "A request without a token is stopped at the edge, with status %d. %s", anonymous.Status, anonymous.Meaning)
	case anonymous.Responder == "":
		f.add(Unknown, "A request without a token got no answer.")
	case anonymous.Responder == probe.Unknown:
		f.add(Failed, "A server outside Cloudflare answers a request without a token with status %d.", anonymous.Status)
		f.advise("The hostname does not lead to the Gateway; see the step dns.")
	case anonymous.Responder == probe.Edge && anonymous.Code != "cache":
		f.add(Unknown, "Whether a request without a token is rejected is not known: %s", anonymous.Meaning)
	case refuses(anonymous):
		f.add(Failed, "A request without a token is rejected with status %d behind the edge: no Access application asks visitors to log in.", anonymous.Status)
		if managed {
			f.advise("Check the application in the Cloudflare dashboard. The controller reads the applications every ten minutes, and repairs its own.")
		} else {
			f.advise("Create an Access application for the hostname, with the audience that the Gateway requires.")
		}
	default:
		f.add(Failed, "A request without a token is answered with status %d by %s, although the Gateway requires a token.", anonymous.Status, nameOfResponder(*anonymous))
		f.advise("Treat the hostname as public. Check in the step objects whether the configuration is in effect, and in the step dns where the record leads.")
	}
}

// refuses reports whether cloudflared or Envoy refuses a request without a token. cloudflared
// answers it with a status alone, so that it looks like a backend's answer.
func refuses(a *probe.Answer) bool {
	byConnector := a.Responder == probe.Backend && a.Bare || a.Responder == probe.Envoy
	return a.Status == http.StatusForbidden && byConnector || a.Responder == probe.Cloudflared
}

// nameOfResponder names the component that answered.
func nameOfResponder(a probe.Answer) string {
	switch a.Responder {
	case probe.Edge:
		if a.Code == "cache" {
			return "Cloudflare's cache"
		}
		return "Cloudflare's edge"
	case probe.Cloudflared:
		return "cloudflared"
	case probe.Envoy:
		return "Envoy"
	case probe.Backend:
		return "the backend"
	case probe.Access:
		return "Cloudflare Access"
	case probe.Unknown:
		return "a server outside Cloudflare"
	}
	return fmt.Sprintf("%q", string(a.Responder))
}
