package probe

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// head parses the lines of a header.
func head(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// edge is the header of every answer of Cloudflare's edge.
func edge(lines ...string) http.Header {
	return head(append(lines, "Server: cloudflare", "CF-Ray: 8f0e1d2c3b4a5968-FRA")...)
}

const (
	text     = "Content-Type: text/plain; charset=UTF-8"
	html     = "Content-Type: text/html; charset=UTF-8"
	page5xx  = `<!DOCTYPE html><html><head><title>www.example.com | %s</title></head><body><div id="cf-wrapper"><div id="cf-error-details"><span class="inline-block">Bad gateway</span> <span class="code-label">Error code 502</span></div></div></body></html>`
	page1xxx = `<html><head><title>Origin DNS error | www.example.com | Cloudflare</title></head><body><div id="cf-wrapper"><h1><span class="cf-error-type" data-translate="error">Error</span> <span class="cf-error-code">1016</span></h1></div></body></html>`
)

// Answers as documented or reported, and the components that sent them.
func TestAnswersTellWhoGaveThem(t *testing.T) {
	plain, secure := &url.URL{Scheme: "http", Host: "www.example.com", Path: "/a"}, &url.URL{Scheme: "https", Host: "www.example.com", Path: "/a"}
	for name, test := range map[string]struct {
		status    int
		header    http.Header
		body      string
		request   Request
		responder Responder
		code      string
	}{
		"a backend":                         {status: 200, header: edge("Content-Type: text/html"), body: "<p>1033</p>", responder: Backend},
		"a backend's 404":                   {status: 404, header: edge(text), body: "not found", responder: Backend},
		"a backend's words about an error":  {status: 500, header: edge(text), body: "upstream: error code: 1033", responder: Backend},
		"a backend's page about an error":   {status: 500, header: edge(html), body: `<p class="cf-error-code">x</p> <title>a | 522: b</title>`, responder: Backend},
		"JSON of a backend":                 {status: 500, header: edge("Content-Type: application/json"), body: `{"error_code":522}`, responder: Backend},
		"Markdown of a backend":             {status: 500, header: edge("Content-Type: text/markdown"), body: "---\nerror_code: 500\n---\n", responder: Backend},
		"an error with status 200":          {status: 200, header: edge(text), body: "error code: 1033", responder: Backend},
		"another status than the page's":    {status: 404, header: edge(text), body: "error code: 522", responder: Backend},
		"no tunnel, text":                   {status: 530, header: edge(text), body: "error code: 1033", responder: Edge, code: "1033"},
		"no origin, text with a line break": {status: 530, header: edge(text), body: "error code: 1016\n", responder: Edge, code: "1016"},
		"no origin, HTML":                   {status: 530, header: edge(html), body: page1xxx, responder: Edge, code: "1016"},
		"no body":                           {status: 530, header: edge(), responder: Edge, code: "530"},
		"another account":                   {status: 403, header: edge(text), body: "error code: 1014", responder: Edge, code: "1014"},
		"the WAF, text":                     {status: 403, header: edge(text), body: "error code: 1020", responder: Edge, code: "1020"},
		"the WAF, HTML": {status: 403, header: edge(html), body: "<html><head><title>Attention Required! | Cloudflare</title></head></html>",
			responder: Edge, code: "1020"},
		"a timeout, text":                       {status: 522, header: edge(text), body: "error code: 522", responder: Edge, code: "522"},
		"a timeout, without a body":             {status: 522, header: edge(), responder: Edge, code: "522"},
		"a timeout, JSON":                       {status: 522, header: edge("Content-Type: application/json"), body: `{"cloudflare_error":true,"error_code":522}`, responder: Edge, code: "522"},
		"a timeout, Markdown":                   {status: 522, header: edge("Content-Type: text/markdown"), body: "---\nerror_code: 522\nstatus: 522\ncloudflare_error: true\n---\n", responder: Edge, code: "522"},
		"an error in a header":                  {status: 530, header: edge("Cf-Error-Type: 1016"), body: "a page of the zone", responder: Edge, code: "1016"},
		"nonsense in that header":               {status: 500, header: edge("Cf-Error-Type: 52x"), responder: Backend},
		"cloudflared, text":                     {status: 502, header: edge(text), body: "error code: 502", responder: Cloudflared, code: "502"},
		"cloudflared, HTML":                     {status: 502, header: edge(html), body: page5xx, responder: Cloudflared, code: "502"},
		"cloudflared, without a page":           {status: 502, header: edge(), responder: Cloudflared, code: "502"},
		"a backend's 502 with a body":           {status: 502, header: edge(text), body: "bad gateway", responder: Backend},
		"a page for 504":                        {status: 504, header: edge(text), body: "error code: 504", responder: Edge, code: "504"},
		"Envoy":                                 {status: 503, header: edge("Proxy-Status: tunnel-gateway; error=connection_refused"), body: "x", responder: Envoy, code: "connection_refused"},
		"Envoy behind other proxies":            {status: 504, header: edge("Proxy-Status: a; error=dns_error, tunnel-gateway;error=http_response_timeout;x=1, b"), responder: Envoy, code: "http_response_timeout"},
		"Envoy in two lines":                    {status: 503, header: edge("Proxy-Status: a", `Proxy-Status: "tunnel-gateway"; error=dns_error`), responder: Envoy, code: "dns_error"},
		"Envoy without an error":                {status: 301, header: edge("Proxy-Status: tunnel-gateway"), responder: Envoy},
		"Envoy whose page the edge replaced":    {status: 504, header: edge(text, "Proxy-Status: tunnel-gateway; error=http_response_timeout"), body: "error code: 504", responder: Envoy, code: "http_response_timeout"},
		"another proxy":                         {status: 503, header: edge("Proxy-Status: other; error=dns_error"), body: "x", responder: Backend},
		"a Proxy-Status that is no list":        {status: 503, header: edge("Proxy-Status: ;;tunnel-gateway"), body: "x", responder: Backend},
		"a list in a list":                      {status: 503, header: edge("Proxy-Status: (tunnel-gateway);error=dns_error"), body: "x", responder: Backend},
		"the login of Access":                   {status: 302, header: edge("Location: https://team.cloudflareaccess.com/cdn-cgi/access/login/www.example.com?x", "Www-Authenticate: Cloudflare-Access resource_metadata=x"), responder: Access, code: "login"},
		"an older login of Access":              {status: 302, header: edge("Location: https://TEAM.cloudflareaccess.com/cdn-cgi/access/login/www.example.com"), responder: Access, code: "login"},
		"a login elsewhere":                     {status: 302, header: edge("Location: https://cloudflareaccess.com.example.net/"), responder: Backend},
		"Access refuses an API client":          {status: 401, header: edge("Www-Authenticate: Cloudflare-Access resource_metadata=x"), responder: Access, code: "forbidden"},
		"Access refuses a token":                {status: 403, header: edge(html), body: "<html><head><title>Forbidden ・ Cloudflare Access</title></head></html>", responder: Access, code: "forbidden"},
		"a challenge":                           {status: 403, header: edge(html, "Cf-Mitigated: challenge"), body: "<title>Just a moment...</title>", responder: Edge, code: "challenge"},
		"the cache":                             {status: 200, header: edge("Cf-Cache-Status: HIT"), responder: Edge, code: "cache"},
		"not the cache":                         {status: 200, header: edge("Cf-Cache-Status: DYNAMIC"), responder: Backend},
		"always https":                          {status: 301, header: edge("Location: https://www.example.com/a"), body: "<hr><center>cloudflare</center>", request: Request{URL: plain}, responder: Edge, code: "always_use_https"},
		"always https, at the root":             {status: 301, header: edge("Location: https://www.example.com/"), body: "<hr><center>cloudflare</center>", request: Request{URL: &url.URL{Scheme: "http", Host: "www.example.com"}}, responder: Edge, code: "always_use_https"},
		"a backend's redirect to https":         {status: 301, header: edge("Location: https://www.example.com/a"), request: Request{URL: plain}, responder: Backend},
		"a backend's redirect elsewhere":        {status: 301, header: edge("Location: https://www.example.com/b"), body: "<hr><center>cloudflare</center>", request: Request{URL: plain}, responder: Backend},
		"SSL/TLS mode off":                      {status: 301, header: edge("Location: http://www.example.com/a"), body: "<hr><center>cloudflare</center>", request: Request{URL: secure}, responder: Edge, code: "ssl_off"},
		"a redirect of https":                   {status: 301, header: edge("Location: https://www.example.com/a"), body: "<hr><center>cloudflare</center>", request: Request{URL: secure}, responder: Backend},
		"gRPC is off":                           {status: 403, header: edge(html), request: Request{GRPC: true}, responder: Edge, code: "grpc"},
		"gRPC is off, without a type":           {status: 403, header: edge(), request: Request{GRPC: true}, responder: Edge, code: "grpc"},
		"a gRPC server's 403":                   {status: 403, header: edge("Content-Type: application/grpc"), request: Request{GRPC: true}, responder: Backend},
		"403 without gRPC":                      {status: 403, header: edge(), responder: Backend},
		"a server elsewhere":                    {status: 200, header: head("Server: nginx"), responder: Unknown},
		"a server elsewhere with its own 502":   {status: 502, header: head("Server: nginx", text), body: "error code: 502", responder: Unknown},
		"a server elsewhere that forges Envoy":  {status: 503, header: head("Server: nginx", "Proxy-Status: tunnel-gateway; error=dns_error"), responder: Unknown},
		"a server elsewhere that forges Access": {status: 302, header: head("Server: nginx", "Location: https://team.cloudflareaccess.com/"), responder: Unknown},
		"a backend that forges Envoy":           {status: 200, header: edge("Proxy-Status: tunnel-gateway; error=dns_error"), request: Request{WithoutEnvoy: true}, responder: Backend},
		"an error that is a text":               {status: 503, header: edge(`Proxy-Status: tunnel-gateway; error="none. It works"`), responder: Envoy},
		"the edge without its name":             {status: 530, header: head("CF-Ray: 1", text), body: "error code: 1033", responder: Edge, code: "1033"},
		"an unknown error":                      {status: 530, header: edge(text), body: "error code: 1099", responder: Edge, code: "1099"},
	} {
		t.Run(name, func(t *testing.T) {
			a := observation{request: test.request, status: test.status, header: test.header, body: []byte(test.body)}.answer(0)
			if a.Responder != test.responder || a.Code != test.code {
				t.Errorf("answered by %s with code %q, want %s with %q", a.Responder, a.Code, test.responder, test.code)
			}
			if a.Status != test.status || a.Ray != test.header.Get("Cf-Ray") || a.Location != test.header.Get("Location") {
				t.Errorf("%+v lacks a value of the answer", a)
			}
			if a.Responder != Backend && a.Meaning == "" {
				t.Errorf("%+v has no meaning", a)
			}
		})
	}
}

func TestErrorsHaveAMeaningAndAdvice(t *testing.T) {
	for name, all := range map[string]map[string]meaning{"edge": edgeMeanings, "Envoy": envoyMeanings} {
		for code, m := range all {
			answersByItself := code == "proxy_internal_response"
			if m.Meaning == "" || m.Advice == "" && !answersByItself {
				t.Errorf("%s error %s: %+v", name, code, m)
			}
		}
	}
	if m := edgeMeaning("1099"); !strings.Contains(m.Meaning, "1099") || m.Advice == "" {
		t.Errorf("an unknown error of the edge: %+v", m)
	}
	if m := envoyMeaning("new_error"); m.Meaning == "" || m.Advice == "" {
		t.Errorf("an unknown error of Envoy: %+v", m)
	}
}

func TestStatusOfACallOfGRPC(t *testing.T) {
	for name, test := range map[string]struct {
		o    observation
		want string
	}{
		"in the header":  {observation{header: edge("Content-Type: application/grpc+proto", "Grpc-Status: 12")}, "12"},
		"in the trailer": {observation{header: edge("Content-Type: application/grpc"), trailer: head("Grpc-Status: 0")}, "0"},
		"none":           {observation{header: edge("Content-Type: application/grpc")}, ""},
		"a text":         {observation{header: edge("Content-Type: application/grpc", "Grpc-Status: 0. It works")}, ""},
		"of no call":     {observation{header: edge("Grpc-Status: 0")}, ""},
	} {
		if got := test.o.answer(0).GRPCStatus; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A server that is not Cloudflare's can send any text.
func TestRayIsNoText(t *testing.T) {
	if a := (observation{header: head("Cf-Ray: 1. It works")}).answer(0); a.Ray != "" {
		t.Errorf("ray %q", a.Ray)
	}
}

// Every answer has a responder.
func FuzzAnswers(f *testing.F) {
	f.Add(530, "text/plain", "error code: 1033", "tunnel-gateway; error=dns_error", "https://a.cloudflareaccess.com/", true, true)
	f.Add(502, "text/html", page5xx, "", "", false, true)
	f.Add(403, "text/html", page1xxx, "a;b", ":", true, false)
	f.Add(522, "application/json", `{"cloudflare_error":true,"error_code":522}`, "", "", false, true)
	f.Add(522, "text/markdown", "---\nerror_code: 522\ncloudflare_error: true\n---", "", "", false, true)
	f.Fuzz(func(t *testing.T, status int, kind, body, proxies, location string, isGRPC, cloudflare bool) {
		header := head("Content-Type: "+kind, "Proxy-Status: "+proxies, "Location: "+location)
		if cloudflare {
			header.Set("Cf-Ray", "1")
		}
		r := Request{URL: &url.URL{Scheme: "http", Host: "www.example.com"}, GRPC: isGRPC}
		a := observation{request: r, status: status, header: header, body: []byte(body)}.answer(0)
		possible := map[Responder]bool{
			Edge: cloudflare && a.Code != "", Cloudflared: cloudflare && a.Code != "", Backend: cloudflare,
			Envoy: cloudflare && strings.Contains(proxies, proxyName), Access: cloudflare, Unknown: !cloudflare,
		}
		if !possible[a.Responder] {
			t.Errorf("%+v, Proxy-Status %q, through Cloudflare: %t", a, proxies, cloudflare)
		}
		if isNumber := strings.Trim(a.Code, "0123456789") == ""; isNumber && a.Responder != Envoy && len(a.Code) > 4 {
			t.Errorf("code %q", a.Code)
		}
	})
}
