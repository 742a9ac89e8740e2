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
	isProtected := func(g ServingGateway) bool { return g.Protected }
	isOpen := func(g ServingGateway) bool { return !g.Protected }
	protected, open := slices.ContainsFunc(e.Gateways, isProtected), slices.ContainsFunc(e.Gateways, isOpen)
	switch {
	case len(e.Gateways) == 0 && e.Incomplete:
		f.add(Unknown, "Not checked, because no Gateway that you can read serves the hostname.")
	case len(e.Gateways) == 0:
		f.add(Unknown, "Not checked, because no Gateway is known to serve the hostname.")
	case protected && open:
		f.add(Unknown, "Some of the Gateways require a Cloudflare Access token and others do not. The record decides which one gets the request.")
	case protected:
		f.protected(v.anonymous)
	default:
		f.open(v.anonymous)
	}
	if e.Unlisted && len(e.Gateways) > 0 {
		f.add(Unknown, "Gateways and ListenerSets that you cannot read can claim the hostname, with or without a token.")
	}
	return newStep(StepAccess, f)
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
// sent.
func (f *findings) protected(anonymous *probe.Answer) {
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
		f.advise("Create an Access application for the hostname, with the audience that the Gateway requires.")
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
