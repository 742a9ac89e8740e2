package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// decisionStep reports which listener, route and backend answer the request, as the
// controller decides from the objects. It is plan --why, shortened.
func (i *inspection) decisionStep() Step {
	if len(i.receivers) == 0 {
		return newStep(StepDecision, slices.Concat(i.unserved(), i.reported(), i.detached(), i.notKnown()))
	}
	var all findings
	if n := len(i.receivers); n > 1 {
		all.add(Warning, "%d Gateways have a listener for %s. DNS determines which of their tunnels receives the request.", n, i.request.Hostname())
		all.advise("Remove the hostname from all Gateways except one, or select one with --gateway.")
	}
	all = append(all, i.combine(func(g inspected) findings { return g.decision })...)
	return newStep(StepDecision, slices.Concat(all, i.reported(), i.detached(), i.notKnown()))
}

// unserved explains that no Gateway has a listener for the host. Without permission to read
// every object, this is not known.
func (i *inspection) unserved() findings {
	var f findings
	switch message := i.Plan.NoGateway(); {
	case len(i.explanation.Reported) > 0: // these say more
	case len(i.explanation.Unknown) > 0:
		f.add(Unknown, "Whether a Gateway serves the hostname is not known: %s", suggest.Sentence(i.Plan.Unserved(i.request)))
	case message != "":
		f.add(Failed, "%s", message)
		f.advise("Set spec.gatewayClassName of a Gateway to a GatewayClass of this controller, or set --controller-name.")
	default:
		f.add(Failed, "No Gateway has a listener for the hostname: %s", suggest.Sentence(i.Plan.Unserved(i.request)))
		f.advise("If the hostname is spelled correctly, add a listener with it to a Gateway or a ListenerSet, and attach a route to it.")
	}
	return f
}

// reported reports the statuses in the cluster that replace the decision about a Gateway that
// cannot be read. If the status of one route is as expected, problems of others are warnings.
func (i *inspection) reported() findings {
	var f findings
	problem := Failed
	for n := range i.explanation.Reported {
		r := &i.explanation.Reported[n]
		if isRoute := strings.HasSuffix(r.Object.Kind, "Route"); isRoute && r.Healthy() {
			problem = Warning
		}
	}
	for n := range i.explanation.Reported {
		r := &i.explanation.Reported[n]
		switch {
		case r.Healthy():
			f.add(OK, "%s.", r)
		case !r.Current && len(r.Conditions) > 0: // it says nothing about the present version
			f.add(Warning, "%s", suggest.Sentence(r.String()))
		default:
			f.add(problem, "%s", suggest.Sentence(r.String()))
		}
	}
	return f
}

// notKnown says what the decision does not know, and how to permit reading it.
func (i *inspection) notKnown() findings {
	var f findings
	for _, text := range i.explanation.Unknown {
		f.add(Unknown, "Not known: %s.", text)
	}
	if gaps := i.Source.DescribeGaps(); gaps != "" {
		f.add(Unknown, "You cannot read everything: %s", gaps)
	}
	return f
}

// detached reports the routes that would serve the host if their parents existed.
func (i *inspection) detached() findings {
	var f findings
	for n, d := range i.explanation.Detached {
		if n == maxShown {
			f.add(Warning, "More routes have a parent that does not exist; plan --why lists them.")
			break
		}
		f.add(Warning, "%s would serve the hostname if its parent existed: %s", d.Route, suggest.Sentence(strings.Join(d.Problems, "; ")))
	}
	return f
}

// decided reports what one Gateway does with the request.
func (i *inspection) decided(r *plan.Receiver) findings {
	var f findings
	if r.Rejected != nil {
		f.add(Failed, "%s is not accepted: %s: %s", gatewayOf(r), r.Rejected.Reason, r.Rejected.Message)
		return f
	}
	if f = append(f, receivingListeners(r)...); f.haveFailed() {
		return f
	}
	f = append(f, i.answer(r)...)
	if r.Problem != "" && (r.Tunnel == nil || !r.Tunnel.Spec.Paused) { // the step objects reports a pause
		f.add(Warning, "%s: %s", gatewayOf(r), r.Problem)
	}
	return append(f, others(r)...)
}

func gatewayOf(r *plan.Receiver) string { return fmt.Sprintf("Gateway %s/%s", r.Namespace, r.Name) }

// receivingListeners names the listeners that receive the request.
func receivingListeners(r *plan.Receiver) findings {
	var f findings
	for n := range r.Listeners {
		l := &r.Listeners[n]
		switch {
		case l.ReceivesRequest && (l.Reason == "" || l.Reason == conditions.ReasonPending.String()): // see the step objects
			f.add(OK, "%s receives the request: listener %s of %s, for %s.", gatewayOf(r), l.Name, l.Owner, hostnameOf(l.Hostname))
		case l.ReceivesRequest:
			f.add(Failed, "Listener %s of %s, for %s, receives the request, but is not served: %s: %s", l.Name, l.Owner, hostnameOf(l.Hostname), l.Reason, l.Message)
		}
	}
	if len(f) == 0 && len(r.Listeners) > 0 {
		l := &r.Listeners[0]
		f.add(Failed, "Listener %s of %s, for %s, does not receive the request: %s: %s", l.Name, l.Owner, hostnameOf(l.Hostname), l.Reason, l.Message)
	}
	return f
}

// hostnameOf describes a listener's hostname.
func hostnameOf(hostname string) string {
	if hostname == "" {
		return "every hostname"
	}
	return hostname
}

// answer reports which entry answers the request, and with what.
func (i *inspection) answer(r *plan.Receiver) findings {
	var f findings
	a := r.Answer
	switch {
	case a == nil:
	case a.Incomplete:
		f.add(Unknown, "No route that you can read answers %s.", i.request)
	case a.Entry == nil:
		f.add(Failed, "%s gets status %d: %s", i.request, a.Status, suggest.Sentence(cmp.Or(a.Failure, "no route on this listener matches the request")))
		f.advise("Attach a route that matches the request. To see all routes: kubectl tunnel-gateway plan --why %s", i.request)
	case a.RedirectLoop:
		f.add(Failed, "%s redirects to the requested URL itself, so visitors get too many redirects.", a.Entry)
		f.advise("Change the hostname, the path or the scheme of the redirect.")
	case a.Location != "":
		f.add(OK, "%s answers with status %d and redirects to %s.", a.Entry, a.Status, a.Location)
	case lacksBackend(r):
		f.add(OK, "%s answers with status %d, because no backend resolves.", a.Entry, a.Status)
	case a.Failure != "":
		f.add(Failed, "%s matches the request: %s", a.Entry, a.Failure)
	case a.Status != 0:
		f.add(OK, "%s answers with status %d.", a.Entry, a.Status)
	default:
		f.add(OK, "%s answers: %s.", a.Entry, backends(a))
	}
	if a != nil && len(a.BypassThrough) > 0 {
		f.add(Warning, "Without a Cloudflare Access token, requests with this host in another letter case or with a trailing dot can reach the rules for %s.", strings.Join(a.BypassThrough, ", "))
	}
	return f
}

// lacksBackend reports whether the answering rule returns an error because of its backends.
// The step backend reports the cause.
func lacksBackend(r *plan.Receiver) bool {
	return r.Entry != nil && r.Entry.Action.Problem != nil && r.Entry.Action.Problem.Reason != conditions.ReasonUnsupportedValue.String()
}

// backends describes the backends of an answer.
func backends(a *plan.Answer) string {
	if len(a.Backends) == 1 {
		return a.Backends[0].Backend
	}
	texts := make([]string, len(a.Backends))
	for n, b := range a.Backends {
		texts[n] = fmt.Sprintf("%d %% %s", b.Percent, b.Backend)
	}
	return strings.Join(texts, ", ")
}

// others reports the routes on the listeners that do not answer the request.
func others(r *plan.Receiver) findings {
	var f findings
	for n, o := range r.Others {
		if n < maxShown {
			f.add(OK, "%s matches other requests: %s.", o.Route, abbreviate(append(slices.Clone(o.Hostnames), o.Matches...)))
		}
	}
	for n, u := range r.Unserved {
		if n == maxShown {
			f.add(Warning, "%d more routes match the request and do not serve it; plan --why lists them.", len(r.Unserved)-n)
			break
		}
		f.add(Warning, "%s on %s matches, but does not serve the request: %s: %s", u.Route, u.Parent, u.Reason, u.Message)
	}
	shown := 0
	for n := range r.Shadowed {
		s := &r.Shadowed[n]
		if shown < maxShown && r.Answer != nil && r.Answer.Entry != nil && s.Route != r.Answer.Entry.Route {
			f.add(OK, "%s also matches, but does not answer: %s.", &s.Entry, s.Reason)
			shown++
		}
	}
	return f
}
