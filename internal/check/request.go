package check

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// requestStep reports the answer to the caller's request, and compares it with the
// expectation.
func requestStep(r Request, e Expectation, v visits) Step {
	var f findings
	if v.answer == nil {
		f.add(OK, "No request was sent, because of --no-request.")
		return newStep(StepRequest, f)
	}
	a := *v.answer
	if a.Responder == "" {
		f.unanswered(r, a)
	} else {
		a = e.attribute(a)
		var compared findings
		compared.compare(r, e, a)
		f.add(newStep("", compared).Result, "%s", r.describe(e, a))
		f = append(f, compared...)
	}
	step := newStep(StepRequest, f)
	step.Answer = &a
	return step
}

// unanswered reports a request without an answer.
func (f *findings) unanswered(r Request, a probe.Answer) {
	host := r.URL.Hostname()
	switch a.Failure {
	case probe.NoSuchHost:
		f.add(Failed, "The request could not be sent, because %s does not resolve.", host)
	case probe.Untrusted, probe.Handshake:
		f.add(Failed, "The request was not sent, because the certificate is missing or not valid.")
		f.advise("See the step certificate.")
	case probe.Timeout:
		f.add(Failed, "No answer from %s within %s.", host, a.Duration.Round(time.Second))
		f.advise("Cloudflare itself answers after 100 seconds at the latest. Check the network of this machine, then the backend.")
	case probe.NoFailure, probe.Refused, probe.Other:
		f.add(Failed, "The request failed: %s.", a.Err)
	}
}

// attribute returns the answer with the responder that the expectation tells apart: a rule of
// the tunnel's configuration and a connector without one answer with a status alone, which
// looks like a backend's answer.
func (e Expectation) attribute(a probe.Answer) probe.Answer {
	if a.Responder != probe.Backend || !a.Bare || len(e.Gateways) != 1 {
		return a
	}
	g := e.Gateways[0]
	switch {
	case a.Status == http.StatusForbidden && g.Protected:
		a.Responder, a.Code = probe.Cloudflared, "access"
		a.Meaning = "cloudflared rejects the request: it has no valid Cloudflare Access token."
		a.Advice = "See the step access."
	case g.UsesEnvoy: // Envoy identifies itself
	case a.Status == http.StatusServiceUnavailable && g.Status == 0:
		a.Responder, a.Code = probe.Cloudflared, "no_configuration"
		a.Meaning = "cloudflared has no configuration, or the backend returned 503 without a body."
		a.Advice = "See the step objects for the configuration, and the connectors' logs."
	case a.Status == g.Status:
		a.Responder, a.Code = probe.Cloudflared, "rule"
		a.Meaning = "The status comes from a rule in the tunnel's configuration."
	}
	return a
}

// maxLocation is how much of a Location is printed. Login pages have long ones.
const maxLocation = 200

// describe describes the answer and the component that sent it.
func (r Request) describe(e Expectation, a probe.Answer) string {
	method := cmp.Or(strings.ToUpper(r.Method), http.MethodGet)
	if r.isGRPC(e) {
		method = "gRPC without a message"
	}
	text := fmt.Sprintf("%s: status %d after %s, answered by %s.", method, a.Status, a.Duration.Round(time.Millisecond), nameOfResponder(a))
	if a.Ray != "" {
		text += " CF-Ray " + a.Ray + "."
	}
	if a.Code != "" && a.Responder == probe.Envoy {
		text += " Proxy-Status error " + a.Code + "."
	}
	if a.GRPCStatus != "" {
		text += " grpc-status " + a.GRPCStatus + "."
	}
	if a.Location != "" {
		text += " Location, not followed: " + shortened(a.Location, maxLocation)
	}
	return text
}

func shortened(text string, limit int) string {
	if letters := []rune(text); len(letters) > limit {
		return string(letters[:limit]) + "…"
	}
	return text
}

// compare compares the answer with the expectation.
func (f *findings) compare(r Request, e Expectation, a probe.Answer) {
	switch a.Responder {
	case probe.Backend:
		f.backend(r, e, a)
	case probe.Envoy, probe.Cloudflared:
		f.dataPlane(e, a)
	case probe.Access:
		f.login(e, a)
	case probe.Edge:
		f.edge(a)
	case probe.Unknown:
		f.add(Failed, "%s", a.Meaning)
		f.adviseIf(a.Advice)
	}
}

// edge reports an answer of Cloudflare's edge.
func (f *findings) edge(a probe.Answer) {
	result := Failed
	if a.Status < http.StatusBadRequest {
		result = Warning // a redirect to https, and the cache
	}
	text := a.Meaning
	if isNumber(a.Code) {
		text = "Cloudflare error " + a.Code + ": " + text
	}
	f.add(result, "%s", text)
	f.adviseIf(a.Advice)
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// dataPlane reports an answer of Envoy or cloudflared, which is expected if the routing table
// answers by itself.
func (f *findings) dataPlane(e Expectation, a probe.Answer) {
	expected := len(e.Gateways) == 1 && e.Gateways[0].Status == a.Status
	switch {
	case expected:
		f.add(OK, "%s The answer matches the routes.", cmp.Or(a.Meaning, "The answer needs no backend."))
		return
	case a.Code == "502" && len(e.Gateways) == 1 && e.Gateways[0].UsesEnvoy:
		f.add(Failed, "cloudflared cannot reach Envoy in its pod, or the backend returned 502 and Cloudflare replaced its page.")
		f.advise("Check the logs of both containers in the connector pods.")
		return
	case a.Status < http.StatusBadRequest && len(e.Gateways) == 0:
		f.elsewhere(e)
		return
	case a.Status < http.StatusBadRequest:
		f.add(OK, "%s", cmp.Or(a.Meaning, "The answer needs no backend."))
		return
	}
	f.add(Failed, "%s", a.Meaning)
	f.adviseIf(a.Advice)
}

// login reports an answer of Cloudflare Access.
func (f *findings) login(e Expectation, a probe.Answer) {
	result := Warning
	for _, g := range e.Gateways {
		if g.Protected {
			result = OK
		}
	}
	f.add(result, "%s The request did not reach the backend.", a.Meaning)
	f.adviseIf(a.Advice)
}

// elsewhere reports an answer although no Gateway is known to serve the host.
func (f *findings) elsewhere(e Expectation) {
	if e.Incomplete {
		f.add(Unknown, "Whether the answer comes from a Gateway is not known, because you cannot read every object.")
		return
	}
	f.add(Warning, "No Gateway in this cluster serves the hostname, so something else answered.")
	f.advise("See in the step dns where the record leads.")
}

// backend reports the answer of a backend.
func (f *findings) backend(r Request, e Expectation, a probe.Answer) {
	if len(e.Gateways) == 0 {
		f.elsewhere(e)
		return
	}
	if g := e.Gateways[0]; len(e.Gateways) == 1 && g.Status != 0 {
		f.add(Warning, "The routes specify that the Gateway itself answers with status %d, but a backend answered.", g.Status)
		f.advise("See in the step objects whether the configuration is in effect, and in the step dns where the hostname leads.")
		return
	}
	switch {
	case r.isGRPC(e) && a.GRPCStatus == "":
		f.add(Failed, "The answer is not a gRPC response: it has no grpc-status.")
		f.advise("Check that the backend's port serves gRPC, and that no proxy answers in its place.")
	case a.Status >= http.StatusInternalServerError:
		f.add(Warning, "The request reached the backend, which returned an error.")
		f.advise("Check the backend's logs.")
	}
}
