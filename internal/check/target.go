package check

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseTarget parses HOST, HOST/PATH, or a URL with http or https, each with or without a
// query. Without a scheme, the scheme is https, because visitors normally use it. The host
// gets the form that a browser sends: lower case, Punycode, and no dot at the end.
func ParseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(withScheme(text))
	switch {
	case err != nil && strings.Contains(text, "@"):
		return nil, errors.New("not a hostname or URL") // the cause could contain a password
	case err != nil:
		// Unwrap removes the URL, which can contain a password, from the error.
		return nil, fmt.Errorf("not a hostname or URL: %w", errors.Unwrap(err))
	case u.User != nil:
		return nil, errors.New("a user name is not supported; use --header for credentials")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("scheme %q is not supported; use http or https", u.Scheme)
	case u.Port() != "" && u.Port() != defaultPorts[u.Scheme]:
		return nil, fmt.Errorf("port %s is not supported: visitors reach a tunnel at port 443, or at port 80 with http; use %s", u.Port(), u.Hostname())
	}
	if u.Host, err = canonicalHost(u.Hostname()); err != nil {
		return nil, err
	}
	u.Path, u.Fragment, u.RawFragment = cmp.Or(u.Path, "/"), "", ""
	return u, nil
}

// defaultPorts are the ports that a URL can contain, by scheme.
var defaultPorts = map[string]string{"https": "443", "http": "80"}

// withScheme adds https to a text without a scheme.
func withScheme(text string) string {
	if scheme, _, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "/") {
		return text
	}
	return "https://" + text
}

// canonicalHost returns the host as a browser sends it.
func canonicalHost(host string) (string, error) {
	if strings.Contains(host, "*") {
		return "", fmt.Errorf("%s has a wildcard; name one hostname, such as %s", host, strings.Replace(host, "*", "www", 1))
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", fmt.Errorf("%s is an IP address, and Gateways serve hostnames; use a hostname such as shop.example.com", host)
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil || len(validation.IsDNS1123Subdomain(ascii)) > 0 {
		return "", fmt.Errorf("%q is not a valid hostname, such as shop.example.com", host)
	}
	return ascii, nil
}
