package envoy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Envoy rejects the whole table because of one bad value, and accepts some values that
// change requests to other tenants. The functions in this file return the problem with a
// value, or "".

// framingHeaders are the headers that describe the connection or the length of a message.
// A response with another length would end inside the next response on a connection that
// tenants share.
var framingHeaders = []string{
	"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// token is the syntax for header names (RFC 9110, section 5.1).
var token = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// isEnvoyHeader reports whether the header controls Envoy.
func isEnvoyHeader(name string) bool { return strings.HasPrefix(strings.ToLower(name), "x-envoy-") }

func modifierNameProblem(name string) string {
	switch {
	case !token.MatchString(name):
		return fmt.Sprintf("header name %q, which is not valid", name)
	case slices.Contains(framingHeaders, strings.ToLower(name)) || isEnvoyHeader(name):
		return fmt.Sprintf("header %s, which must not be changed", name)
	default:
		return ""
	}
}

// headerValueProblem rejects control characters.
func headerValueProblem(name, value string) string {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Sprintf("value of header %s with the control character %q", name, rune(c))
		}
	}
	return ""
}

// modifierProblem checks a filter that changes headers. Each name can have one action.
func modifierProblem(f *gatewayv1.HTTPHeaderFilter) string {
	if f == nil {
		return ""
	}
	seen := map[string]bool{}
	check := func(name string) string {
		key := strings.ToLower(name)
		if seen[key] {
			return fmt.Sprintf("several changes to header %s", name)
		}
		seen[key] = true
		return modifierNameProblem(name)
	}
	for _, h := range slices.Concat(f.Set, f.Add) {
		if problem := check(string(h.Name)); problem != "" {
			return problem
		}
		if problem := headerValueProblem(string(h.Name), h.Value); problem != "" {
			return problem
		}
	}
	for _, name := range f.Remove {
		if problem := check(name); problem != "" {
			return problem
		}
	}
	return ""
}

// literalPath is the syntax for a path that replaces another path.
var literalPath = regexp.MustCompile(`^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*$`)

func replacementProblem(path string) string {
	if path == "" || literalPath.MatchString(path) {
		return ""
	}
	return fmt.Sprintf("replacement path %q, which is not a valid path", path)
}

// matchedHeaderProblem checks a header name in a match.
func matchedHeaderProblem(name string) string {
	if strings.EqualFold(name, "connection") || isEnvoyHeader(name) {
		return fmt.Sprintf("header %s, which is removed before routes are matched", name)
	}
	return ""
}
