package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// Unserved returns the warning that no route on a Gateway in the plan answers the
// request, with a similar hostname if there is one. It returns "" if a route answers, or if
// the hostname is closed until Cloudflare Access protects it.
func (p *Plan) Unserved(request routing.Request) string {
	e := p.Explain(request)
	traces := e.Traces
	if slices.ContainsFunc(traces, func(t Trace) bool { return t.Answer != nil && t.Answer.Entry != nil }) {
		return ""
	}
	if e.isReported() || slices.ContainsFunc(traces, Trace.isClosed) {
		return ""
	}
	hostname := request.Hostname()
	message := hostname + " is not served"
	switch {
	case len(e.Reported) > 0:
		return fmt.Sprintf("no current status confirms that a route serves %s", request)
	case p.isIncomplete():
		message = fmt.Sprintf("no object that you can read serves %s", request)
	case len(traces) > 0:
		message = fmt.Sprintf("no route answers %s", request)
	}
	if slices.ContainsFunc(traces, func(t Trace) bool { return len(t.MissedHostnames) > 0 }) {
		return suggest.DidYouMean(message, hostname)
	}
	return suggest.DidYouMean(message, suggest.Closest(hostname, p.similarHostnames(hostname)))
}

// isClosed reports whether the hostname is closed until Cloudflare Access protects it.
func (t Trace) isClosed() bool { return t.Access != nil && t.Access.State == access.Closed }

// similarHostnames returns the hostnames on listeners and rules other than host. It
// replaces a wildcard with the first label of host.
func (p *Plan) similarHostnames(host string) []string {
	var all []string
	for i := range p.Gateways {
		g := &p.Gateways[i]
		for _, l := range g.Listeners {
			all = append(all, l.Hostname)
		}
		if g.result.Table != nil {
			all = append(all, servedHostnames(g.result.Table)...)
		}
	}
	return otherHostnames(host, all)
}

// otherHostnames returns the hostnames other than host. It replaces a wildcard with the
// first label of host.
func otherHostnames(host string, hostnames []string) []string {
	label, _, _ := strings.Cut(host, ".")
	var all []string
	for _, hostname := range hostnames {
		if rest, wildcard := strings.CutPrefix(hostname, "*"); wildcard {
			hostname = label + rest
		}
		if hostname != "" && hostname != host {
			all = append(all, hostname)
		}
	}
	return all
}
