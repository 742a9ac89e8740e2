package gateway

import (
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
	rest := strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://")
	u, err := url.Parse("//" + rest)
	if err != nil {
		return Request{}, fmt.Errorf("%q is no hostname with a path: %w", text, err)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "" {
		return Request{}, fmt.Errorf("%q has no hostname; write HOST/PATH", text)
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		return Request{}, fmt.Errorf("%q: %q is no hostname that a request can have", text, host)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return Request{Host: host, Path: u.Path}, nil
}

func (r Request) String() string { return r.Host + r.Path }

// on reports whether the request is for the hostname.
func (r Request) on(hostname string) bool { return covers(hostname, r.Host) }

// at reports whether the expression of a rule matches the request's path.
func (r Request) at(expression string) bool {
	if expression == "" {
		return true
	}
	compiled, err := regexp.Compile(expression)
	return err == nil && compiled.MatchString(r.Path)
}
