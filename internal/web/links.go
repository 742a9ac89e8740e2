package web

import (
	"net/url"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// anyHostname represents the empty hostname, which covers every host, in links and on pages.
const anyHostname = "*"

// linkFunctions are the template functions that return links. A Gateway is
// "namespace/name".
var linkFunctions = map[string]any{
	"linkTo":            linkTo,
	"hostnameLink":      hostnameLink,
	"hostnamesLink":     hostnamesLink,
	"namespacesLink":    namespacesLink,
	"whyLink":           whyLink,
	"pictureOfHostname": pictureOfHostname, "pictureOfNamespace": pictureOfNamespace,
	"orAny": orAny, "objectLink": objectLink,
}

// linkTo returns a link to the page at path. The parameters are names, each followed by its
// value; a parameter with an empty value is left out.
func linkTo(path string, parameters ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			query.Add(parameters[i], parameters[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// hostnameLink returns a link to the page for a hostname in the Gateway's table.
func hostnameLink(gateway, hostname string) string {
	return linkTo("/hostname", "gateway", gateway, "name", orAny(hostname))
}

// hostnamesLink returns a link to the Gateway's table, or to all tables for an empty gateway.
// An empty namespace means all namespaces.
func hostnamesLink(gateway, namespace string) string {
	return linkTo("/hostnames", "gateway", gateway, "namespace", namespace)
}

// namespacesLink returns a link to the namespaces with their use and the Gateway's limits.
func namespacesLink(gateway string) string { return linkTo("/namespaces", "gateway", gateway) }

// whyLink returns a link to the explanation of a request for the hostname. A wildcard gets an
// example for a host that it covers.
func whyLink(hostname string) string {
	host := hostname
	if rest, wildcard := strings.CutPrefix(orAny(hostname), anyHostname); wildcard {
		host = "example" + rest
		if rest == "" {
			host = "host.example.com"
		}
	}
	return linkTo("/why", "url", "https://"+host+"/")
}

// pictureOfHostname returns a link to one hostname's picture.
func pictureOfHostname(gateway, hostname string) string {
	return linkTo("/picture", "gateway", gateway, "hostname", orAny(hostname))
}

// pictureOfNamespace returns a link to one namespace's picture.
func pictureOfNamespace(gateway, namespace string) string {
	return linkTo("/picture", "gateway", gateway, "namespace", namespace)
}

// orAny returns the hostname, or [anyHostname] for the empty one.
func orAny(hostname string) string {
	if hostname == "" {
		return anyHostname
	}
	return hostname
}

// hostnameIn returns the hostname that a link's parameter contains.
func hostnameIn(parameter string) string {
	if parameter == anyHostname {
		return ""
	}
	return strings.ToLower(parameter)
}

// objectLink returns a link to the hostnames that the object concerns, or "" if it has none.
func objectLink(o plan.Owner) string {
	switch o.Kind {
	case "Gateway":
		return hostnamesLink(o.Namespace+"/"+o.Name, "")
	case "ListenerSet", "HTTPRoute", "GRPCRoute":
		return linkTo("/hostnames", "q", o.String())
	default:
		return ""
	}
}
