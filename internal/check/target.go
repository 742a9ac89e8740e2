package check

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// ParseTarget parses HOST, HOST/PATH, or a URL with http or https, each with or without a
// query. Without a scheme, the scheme is https, because visitors normally use it.
func ParseTarget(text string) (*url.URL, error) {
	if strings.Contains(text, "*") {
		return nil, fmt.Errorf("%q has a wildcard; name one hostname below it, such as %s", text, strings.Replace(text, "*", "www", 1))
	}
	request, err := routing.ParseRequest(text)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(request.Host); err == nil {
		return nil, fmt.Errorf("%s is an IP address, and Gateways serve hostnames; use a hostname such as shop.example.com", request.Host)
	}
	u, err := url.Parse(string(cmp.Or(request.Scheme, routing.SchemeHTTPS)) + "://" + withoutScheme(text))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if port := u.Port(); port != "" && port != defaultPorts[u.Scheme] {
		return nil, fmt.Errorf("port %s is not supported: visitors reach a tunnel at port 443, or at port 80 with http; use %s", port, u.Hostname())
	}
	u.Host, u.Path, u.Fragment, u.RawFragment = u.Hostname(), cmp.Or(u.Path, "/"), "", ""
	return u, nil
}

// defaultPorts are the ports that a URL can contain, by scheme.
var defaultPorts = map[string]string{"https": "443", "http": "80"}

// withoutScheme returns the text after the scheme, if it has one.
func withoutScheme(text string) string {
	if scheme, rest, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "/") {
		return rest
	}
	return text
}
