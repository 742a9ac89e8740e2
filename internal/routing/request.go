package routing

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Request has the parts that decide which entry answers it.
type Request struct {
	// Scheme is the visitor's scheme. Empty means https, which visitors normally use.
	Scheme Scheme `json:"scheme,omitempty"`
	// Host is a DNS name as in the URL, without a port.
	Host string `json:"host"`
	// Path is the path without the query, in the form in which the data plane compares
	// paths. It begins with a slash.
	Path string `json:"path"`
	// Method is the HTTP method. Empty means GET.
	Method string `json:"method,omitempty"`
	// Headers are by canonical name.
	Headers map[string][]string `json:"headers,omitempty"`
	// Query is the query as in the URL, without the question mark.
	Query string `json:"query,omitempty"`
	// EscapedPath is the path as in the URL. It is empty when it is not known.
	EscapedPath string `json:"-"`
}

// Hostname returns the hostname that the Host names, in the form in which a [Table] has
// it: in lower case and without a dot at the end.
func (r Request) Hostname() string { return strings.TrimSuffix(strings.ToLower(r.Host), ".") }

// For returns the request with the host and the path in the form in which the data plane
// compares them. The error says why the data plane rejects the path.
func (r Request) For(c Capabilities) (Request, error) {
	if !c.ComparesHostsExactly {
		r.Host = r.Hostname()
	}
	if r.EscapedPath == "" {
		return r, nil
	}
	path, err := c.RequestPath(r.EscapedPath)
	if err != nil {
		return r, err
	}
	r.Path = path
	return r, nil
}

// ParseRequest parses HOST, HOST/PATH, or a URL, each with or without a query. Only an
// http URL gives the Request a Scheme. The path is decoded; [Request.For] returns the
// host and the path in a data plane's form.
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
	r := Request{Host: u.Hostname(), Path: cmp.Or(u.Path, "/"), Query: u.RawQuery, EscapedPath: cmp.Or(u.EscapedPath(), "/")}
	if u.Scheme == "http" {
		r.Scheme = SchemeHTTP
	}
	hostname := r.Hostname()
	if hostname == "" {
		return Request{}, fmt.Errorf("%q has no hostname; use HOST, HOST/PATH or a URL", text)
	}
	if errs := validation.IsDNS1123Subdomain(hostname); len(errs) > 0 {
		return Request{}, fmt.Errorf("%q is not a valid hostname, such as shop.example.com", hostname)
	}
	return r, nil
}

// AddHeader adds the header that NAME:VALUE describes. The error continues the name of an
// input.
func (r *Request) AddHeader(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return fmt.Errorf("must be of the form NAME:VALUE, got %q", text)
	}
	if r.Headers == nil {
		r.Headers = map[string][]string{}
	}
	textproto.MIMEHeader(r.Headers).Add(name, strings.TrimSpace(value))
	return nil
}

// String returns the scheme if it is http, the host, the path and the query.
func (r Request) String() string {
	text := r.Host + r.Path
	if r.Scheme == SchemeHTTP {
		text = "http://" + text
	}
	if r.Query != "" {
		text += "?" + r.Query
	}
	if r.Method != "" {
		text = r.Method + " " + text
	}
	return text
}

func (r Request) method() string { return cmp.Or(r.Method, "GET") }

func (r Request) scheme() Scheme { return cmp.Or(r.Scheme, SchemeHTTPS) }

// parameter returns a query parameter's first value, and whether there is one. Names and
// values are compared as they are in the URL, without decoding.
func (r Request) parameter(name string) (string, bool) {
	for part := range strings.SplitSeq(r.Query, "&") {
		if key, value, _ := strings.Cut(part, "="); key == name {
			return value, true
		}
	}
	return "", false
}

func (r Request) header(name string) []string {
	switch {
	case strings.EqualFold(name, "Host"):
		return []string{r.Host}
	case strings.EqualFold(name, ForwardedProto):
		return []string{string(r.scheme())}
	}
	return textproto.MIMEHeader(r.Headers).Values(name)
}
