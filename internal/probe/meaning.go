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
		"Cloudflare Access denies the request.",
		"Check the policies of the Access application, and the service token if the request has one.",
	}
	notCloudflare = meaning{
		"The answer did not come through Cloudflare: it has no CF-Ray header.",
		"Check the hostname's DNS record: it must be proxied.",
	}
	challenged = meaning{
		"Cloudflare answered with a challenge, which only a browser can solve, instead of forwarding the request.",
		"Check the zone's security level and WAF rules; a rule that skips them lets API clients through.",
	}
	grpcOff = meaning{
		"Cloudflare rejects gRPC requests in this zone: the setting gRPC is off.",
		"Enable gRPC in the Cloudflare dashboard, in the zone's Network settings; the API has no such setting.",
	}
	redirected  = meaning{"Cloudflare redirects to https: the zone's setting always_use_https is on.", ""}
	unencrypted = meaning{
		"Cloudflare redirects to http: the zone's SSL/TLS mode is off.", "Set the mode to Full or Full (strict) in the zone's SSL/TLS settings.",
	}
	cached = meaning{"Cloudflare's cache answered; the request did not reach the backend.", "Request a URL that is not cached, for example with a new query."}
)

// edgeMeanings are the meanings of Cloudflare's errors for a hostname that a tunnel should
// serve. (Source: https://developers.cloudflare.com/support/troubleshooting/http-status-codes/.)
var edgeMeanings = map[string]meaning{
	"500": {"Cloudflare failed internally.", "Try again, and check https://www.cloudflarestatus.com."},
	"502": {
		"cloudflared cannot reach the origin, or the origin returned 502 and Cloudflare replaced its page.",
		"Check that the backend accepts connections on its port, and check the connectors' logs.",
	},
	"504": {
		"The origin returned 504 and Cloudflare replaced its page: a server behind the origin did not answer in time.",
		"Check how long the backend takes, and the route's timeouts.",
	},
	"520": {"The origin's answer was empty or not valid HTTP.", "Check the backend's answer and its logs."},
	"521": {"The edge connects to an IP address, which refuses connections.", toTunnel},
	"522": {"The edge connects to an IP address, which does not answer.", toTunnel},
	"523": {"The edge connects to an IP address, which it cannot reach.", toTunnel},
	"524": {"The backend did not answer within 100 seconds.", "Make the backend answer earlier, for example by sending headers first."},
	"525": {"The edge connects to an IP address, and the TLS handshake failed.", toTunnel},
	"526": {"The edge connects to an IP address, whose certificate is not valid.", toTunnel},
	"527": {"The edge connects to a Railgun server, which failed.", toTunnel},
	"530": {"Cloudflare did not find the origin.", "Check the hostname's DNS record and the tunnel's connectors."},

	"1000": {"The hostname's record leads to an address of Cloudflare.", toTunnel},
	"1001": {"Cloudflare does not serve the hostname: none of its zones contains it.", "Check that the zone is active at Cloudflare."},
	"1002": {"The hostname's record leads to an address that is not allowed.", toTunnel},
	"1003": {"Cloudflare does not accept the Host header.", "Request the hostname instead of an IP address."},
	"1010": {"Cloudflare blocks the client by its signature (Browser Integrity Check).", askWAF},
	"1012": {"Cloudflare blocks the client.", askWAF},
	"1014": {
		"The hostname's record leads to a name in a zone of another account.",
		"Change the record to a tunnel in the account that owns the zone.",
	},
	"1015": {"Cloudflare limits the rate of requests.", "Wait, or change the zone's rate limiting rules."},
	"1016": {
		"Cloudflare does not find the target of the hostname's record: the tunnel does not exist, or is in another account.",
		"Check that the record leads to the tunnel's current address.",
	},
	"1018":      {"Cloudflare does not serve the hostname yet.", "If the zone is new, wait a few minutes and try again."},
	codeBlocked: {"A rule of the zone's WAF blocks the request.", askWAF},
	"1033": {
		"No connector of the tunnel is connected to Cloudflare, or the tunnel was deleted.",
		"Check the connectors' pods and logs, and that the record leads to the tunnel's current address.",
	},
	"1034": {"The hostname's record leads to an address that Cloudflare restricts.", toTunnel},
	"1101": {"A Worker on the hostname threw an exception.", askWorker},
	"1102": {"A Worker on the hostname exceeded its limits.", askWorker},
	"1106": {"A rule of Zone Lockdown blocks the client's address.", askWAF},
}

const (
	toTunnel  = "The hostname's DNS record should be a proxied CNAME record that leads to the tunnel."
	askWAF    = "Look up the CF-Ray in the Cloudflare dashboard, under Security > Events."
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
	"destination_not_found":     {"No route matches the request.", "Check the hostnames, paths, methods and headers in the routes."},
	"dns_error":                 {"The name of the backend cannot be resolved.", "Check the Service of type ExternalName."},
	"http_response_timeout":     {"The backend did not answer in time.", "Check how long the backend takes, and the route's timeouts."},
	"http_protocol_error":       {"The backend's answer is not valid HTTP.", "Check the protocol of the Service's port (appProtocol)."},
	"tls_certificate_error":     {"The backend's certificate is not valid.", "Check the BackendTLSPolicy and the backend's certificate."},
	"tls_protocol_error":        {"The TLS handshake with the backend failed.", "Check whether the backend's port uses TLS."},
	"proxy_configuration_error": {"A backend of the route does not exist, or the rule cannot be served.", "Read the route's condition ResolvedRefs."},
	"http_request_denied":       {"Envoy rejects the request: the hostname is closed, or the request has an upgrade or a Host header that is not permitted.", "Check the conditions of the Gateway and the route."},
	"http_request_error":        {"The request is not valid.", "Check the request's method, path and headers."},
	"proxy_internal_response":   {"The answer comes from a rule.", ""},
	"proxy_internal_error":      {"Envoy failed internally.", "Check the logs of the Envoy containers in the connector pods."},
}

func envoyMeaning(code string) meaning {
	if m, ok := envoyMeanings[code]; ok {
		return m
	}
	return meaning{"Envoy itself answered.", "Check the logs of the Envoy containers in the connector pods."}
}
