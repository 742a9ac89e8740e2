package convert

import (
	"strings"

	"golang.org/x/net/idna"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
)

// punycode returns the second form in which cloudflared compares a rule's hostname, or "".
// It is also in lower case.
func punycode(hostname string) string {
	if ascii, err := idna.Lookup.ToASCII(hostname); err == nil && ascii != hostname {
		return ascii
	}
	return ""
}

// listenerHostname returns the hostname of a listener for the same requests. problem says
// why there is none.
func listenerHostname(hostname string) (canonical, problem string) {
	if isEveryHost(hostname) {
		return "", ""
	}
	canonical = hostname
	if other := punycode(hostname); other != "" {
		canonical = other
	}
	check := validation.IsDNS1123Subdomain
	if strings.HasPrefix(canonical, "*") {
		check = validation.IsWildcardDNS1123Subdomain
	}
	switch {
	case canonical != strings.ToLower(canonical):
		return "", "matches no request: cloudflared compares hostnames case-sensitively, and browsers send them in lower case"
	case len(check(canonical)) > 0:
		return "", "cannot be the hostname of a listener, so its requests reach the rules for wider hostnames"
	case hostnames.Problem(canonical) != "":
		return "", hostnames.Problem(canonical) + ", which listeners do not support"
	}
	return canonical, ""
}
