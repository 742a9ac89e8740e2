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

// Request has the parts of a request that decide which ingress rule answers it.
type Request struct {
	// Host is a DNS name in lower case, without a port.
	Host string `json:"host"`
	// Path is the decoded path without the query. It begins with a slash.
	Path string `json:"path"`
}

// ParseRequest parses HOST, HOST/PATH or a URL.
func ParseRequest(text string) (Request, error) {
	rawURL := text
	if scheme, _, ok := strings.Cut(text, "://"); !ok || strings.Contains(scheme, "/") {
		rawURL = "https://" + text
	}
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		// Unwrap removes the URL, which can contain a password, from the error.
		return Request{}, fmt.Errorf("not a HOST, HOST/PATH or URL: %w", errors.Unwrap(err))
	case u.User != nil:
		return Request{}, errors.New("a user name is not supported; use HOST, HOST/PATH or a URL without it")
	case u.Scheme != "https" && u.Scheme != "http":
		return Request{}, fmt.Errorf("scheme %q is not supported; use http or https", u.Scheme)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "" {
		return Request{}, fmt.Errorf("%q has no hostname; use HOST, HOST/PATH or a URL", text)
	}
	if errs := validation.IsDNS1123Subdomain(host); len(errs) > 0 {
		return Request{}, fmt.Errorf("%q is not a valid hostname", host)
	}
	return Request{Host: host, Path: cmp.Or(u.Path, "/")}, nil
}

func (r Request) String() string { return r.Host + r.Path }

// matchesHostname reports whether the hostname matches the host of the request.
func (r Request) matchesHostname(hostname string) bool { return covers(hostname, r.Host) }

// matchesPath reports whether the path expression of an ingress rule matches the
// path of the request.
func (r Request) matchesPath(expression string) bool {
	if expression == "" {
		return true
	}
	compiled, err := regexp.Compile(expression)
	return err == nil && compiled.MatchString(r.Path)
}
