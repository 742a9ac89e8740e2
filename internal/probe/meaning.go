package probe

// meaning is what an answer means, and what to do. The advice names no object: the caller
// knows the cluster.
type meaning struct{ Meaning, Advice string }

var (
	accessLogin = meaning{
		"Cloudflare Access redirects to the login page.",
		"To check the backend too, send a service token with --header CF-Access-Client-Id: … and --header CF-Access-Client-Secret: ….",
	}
	accessForbidden = meaning{
		"Cloudflare Access refuses the request.",
		"Check the policies of the Access application, and the service token if the request has one.",
	}
	notCloudflare = meaning{
		"The answer did not pass Cloudflare: it has no CF-Ray header.",
		"Check the hostname's DNS record: it must be proxied.",
	}
	challenged = meaning{
		"Cloudflare challenges the client instead of passing the request on, which only a browser can answer.",
		"Check the zone's security level and WAF rules; a rule that skips them lets API clients through.",
	}
	grpcOff = meaning{
		"Cloudflare refuses gRPC requests in this zone: the setting gRPC is off.",
		"Switch gRPC on in the Cloudflare dashboard, under Network of the zone; the API has no such setting.",
	}
	redirected  = meaning{"Cloudflare redirects to https: the zone's setting always_use_https is on.", ""}
	unencrypted = meaning{
		"Cloudflare redirects to http: the zone's SSL/TLS mode is off.", "Set the mode to Full or Full (strict) under SSL/TLS of the zone.",
	}
	cached = meaning{"Cloudflare's cache answered; the backend was not asked.", "Ask for a URL that is not cached, for example with a new query."}
)

// edgeMeanings are the meanings of Cloudflare's errors for a hostname that a tunnel should
// serve. (Source: https://developers.cloudflare.com/support/troubleshooting/http-status-codes/.)
var edgeMeanings = map[string]meaning{
	"500": {"Cloudflare failed internally.", "Try again, and look at https://www.cloudflarestatus.com."},
	"502": {
		"cloudflared reached no origin, or the origin itself returned 502, whose page Cloudflare replaces.",
		"Check that the backend accepts connections on its port, and look at the connectors' logs.",
	},
	"504": {
		"The origin returned 504, whose page Cloudflare replaces: what it asked did not answer in time.",
		"Check how long the backend takes, and the route's timeouts.",
	},
	"520": {"The origin's answer was empty or not valid HTTP.", "Check the backend's answer and its logs."},
	"521": {"The edge connects to an address, which refuses connections.", toTunnel},
	"522": {"The edge connects to an address, which does not answer.", toTunnel},
	"523": {"The edge connects to an address, which cannot be reached.", toTunnel},
	"524": {"The backend did not answer within 100 seconds.", "Let the backend answer earlier, for example by sending headers first."},
	"525": {"The edge connects to an address, with which the TLS handshake failed.", toTunnel},
	"526": {"The edge connects to an address, whose certificate is not valid.", toTunnel},
	"527": {"The edge connects to a Railgun server, which failed.", toTunnel},
	"530": {"Cloudflare did not find the origin.", "Check the hostname's DNS record and the tunnel's connectors."},

	"1000": {"The hostname's record leads to an address of Cloudflare.", toTunnel},
	"1001": {"Cloudflare does not serve the hostname: none of its zones contains it.", "Check that the zone is active at Cloudflare."},
	"1002": {"The hostname's record leads to an address that is not allowed.", toTunnel},
	"1003": {"Cloudflare does not accept the Host header.", "Ask for the hostname instead of an address."},
	"1010": {"Cloudflare blocks the client by its signature (Browser Integrity Check).", askWAF},
	"1012": {"Cloudflare blocks the client.", askWAF},
	"1014": {
		"The hostname's record leads to a name in a zone of another account.",
		"Let the record lead to a tunnel of the account that owns the zone.",
	},
	"1015": {"Cloudflare limits the rate of requests.", "Wait, or change the zone's rate limiting rules."},
	"1016": {
		"Cloudflare does not find the target of the hostname's record: the tunnel does not exist, or is in another account.",
		"Check that the record leads to the tunnel's present address.",
	},
	"1018":      {"Cloudflare does not serve the hostname yet.", "Wait a few minutes after a zone was added, then try again."},
	codeBlocked: {"A rule of the zone's WAF blocks the request.", askWAF},
	"1033": {
		"No connector of the tunnel is connected to Cloudflare, or the tunnel was deleted.",
		"Check the connectors' pods and logs, and that the record leads to the tunnel's present address.",
	},
	"1034": {"The hostname's record leads to an address that Cloudflare restricts.", toTunnel},
	"1101": {"A Worker on the hostname threw an exception.", askWorker},
	"1102": {"A Worker on the hostname exceeded its limits.", askWorker},
	"1106": {"A rule of Zone Lockdown blocks the client's address.", askWAF},
}

const (
	toTunnel  = "The hostname's DNS record should be a proxied CNAME record that leads to the tunnel."
	askWAF    = "Look the CF-Ray up under Security, Events of the zone in the Cloudflare dashboard."
	askWorker = "Check the Workers routes of the zone."
)

func edgeMeaning(code string) meaning {
	if m, ok := edgeMeanings[code]; ok {
		return m
	}
	return meaning{
		"Cloudflare answered with error " + code + ".",
		"See https://developers.cloudflare.com/support/troubleshooting/http-status-codes/.",
	}
}

// envoyMeanings are the meanings of the errors that an Envoy states. (Source of the names: RFC
// 9209, section 2.3. Envoy chooses one for every answer of its own.)
var envoyMeanings = map[string]meaning{
	"connection_refused":        {"The backend refused the connection.", "Check that the pods listen on the Service's target port."},
	"connection_timeout":        {"The connection to the backend timed out.", "Check network policies between Envoy and the backend's pods."},
	"connection_terminated":     {"The backend closed the connection before it answered.", "Look at the logs of the backend's pods."},
	"connection_limit_reached":  {"The backend has too many connections or requests.", "Add pods to the backend."},
	"destination_unavailable":   {"The backend has no ready pod.", "Check the readiness of the pods that the Service selects."},
	"destination_not_found":     {"No route matches the request.", "Check hostname, path, method and headers of the routes."},
	"dns_error":                 {"The name of the backend cannot be resolved.", "Check the Service of type ExternalName."},
	"http_response_timeout":     {"The backend did not answer in time.", "Check how long the backend takes, and the route's timeouts."},
	"http_protocol_error":       {"The backend's answer is not valid HTTP.", "Check the protocol of the Service's port (appProtocol)."},
	"tls_certificate_error":     {"The backend's certificate is not valid.", "Check the BackendTLSPolicy and the backend's certificate."},
	"tls_protocol_error":        {"The TLS handshake with the backend failed.", "Check whether the backend's port uses TLS."},
	"proxy_configuration_error": {"A backend of the route does not exist, or the rule cannot be served.", "Read the route's condition ResolvedRefs."},
	"http_request_denied":       {"Envoy refuses the request: the hostname is closed, or the request has an upgrade or a Host header that is not permitted.", "Look at the conditions of the Gateway and the route."},
	"http_request_error":        {"The request is not valid.", "Check the request's method, path and headers."},
	"proxy_internal_response":   {"A rule answers by itself.", ""},
	"proxy_internal_error":      {"Envoy failed internally.", "Look at the logs of the connectors' Envoy containers."},
}

func envoyMeaning(code string) meaning {
	if m, ok := envoyMeanings[code]; ok {
		return m
	}
	return meaning{"Envoy answered by itself.", "Look at the logs of the connectors' Envoy containers."}
}
