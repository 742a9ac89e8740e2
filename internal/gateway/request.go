package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Request is what a tunnel looks at of a request to find its rule.
type Request struct {
	// Host is a DNS name in lower case, without a port.
	Host string `json:"host"`
	// Path is decoded and without the query; it begins with a slash.
	Path string `json:"path"`
}

// ParseRequest reads HOST, HOST/PATH or a whole URL.
func ParseRequest(text string) (Request, error) {
	whole := text
	if scheme, _, ok := strings.Cut(text, "://"); !ok || strings.Contains(scheme, "/") {
		whole = "https://" + text
	}
	u, err := url.Parse(whole)
	switch {
	case err != nil:
		return Request{}, fmt.Errorf("is no HOST, HOST/PATH or URL: %w", errors.Unwrap(err)) // which does not repeat it
	case u.User != nil:
		return Request{}, errors.New("has a user name, which no request has by the time a tunnel sees it")
	case u.Scheme != "https" && u.Scheme != "http":
		return Request{}, fmt.Errorf("has the scheme %q, and tunnels serve http and https", u.Scheme)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "" {
		return Request{}, fmt.Errorf("%q has no hostname; write HOST/PATH", text)
	}
	if errs := validation.IsDNS1123Subdomain(host); len(errs) > 0 {
		return Request{}, fmt.Errorf("asks for %q, which is no hostname that a request can have", host)
	}
	return Request{Host: host, Path: cmp.Or(u.Path, "/")}, nil
}

func (r Request) String() string { return r.Host + r.Path }

// matchesHostname reports whether the request is for the hostname.
func (r Request) matchesHostname(hostname string) bool { return covers(hostname, r.Host) }

// matchesPath reports whether the expression of a rule matches the request's path.
func (r Request) matchesPath(expression string) bool {
	if expression == "" {
		return true
	}
	compiled, err := regexp.Compile(expression)
	return err == nil && compiled.MatchString(r.Path)
}
