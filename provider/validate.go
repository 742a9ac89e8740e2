package provider

import (
	"fmt"
	"net"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Validate returns an [*InvalidError] if the connector would reject c, and nil otherwise.
// A connector that rejects a configuration keeps the previous one. The error describes
// the first invalid rule. (Source: cloudflared 2026.8.2.)
//
// Validate is exactly as strict as the connector. It therefore accepts configurations
// that the connector accepts but does not serve as intended: hostnames such as
// "*foo.com", in upper case or with a trailing dot; duplicate rules; unknown URL schemes,
// which the connector treats as TCP; negative durations; a query or user information in a
// service URL; and a configuration without rules, with which the connector returns 503
// for every request. Callers must avoid these.
func Validate(c Configuration) error {
	checks := newRuleChecks()
	for i, rule := range c.Ingress {
		last := i == len(c.Ingress)-1
		for _, check := range checks {
			if message := check(rule, last); message != "" {
				return &InvalidError{Rule: i, Message: message}
			}
		}
	}
	return nil
}

// newRuleChecks returns the connector's checks. Each returns the error message for an invalid
// rule, and "" otherwise. last is true for the last rule.
func newRuleChecks() []func(rule IngressRule, last bool) string {
	return []func(rule IngressRule, last bool) string{
		checkHostname,
		checkCatchAll,
		pathProblems{}.check,
		checkService,
		checkAccess,
	}
}

func checkHostname(rule IngressRule, _ bool) string {
	if _, _, err := net.SplitHostPort(rule.Hostname); err == nil {
		return fmt.Sprintf("hostname %q contains a port", rule.Hostname)
	}
	if strings.LastIndex(rule.Hostname, "*") > 0 {
		return fmt.Sprintf("hostname %q contains a wildcard after its first character", rule.Hostname)
	}
	return ""
}

func checkCatchAll(rule IngressRule, last bool) string {
	catchesAll := (rule.Hostname == "" || rule.Hostname == "*") && rule.Path == ""
	if last && !catchesAll {
		return "the last rule must match every request; remove its hostname and path"
	}
	if !last && catchesAll {
		return "only the last rule may match every request"
	}
	return ""
}

// pathProblems has the error messages of paths, which many rules share.
type pathProblems map[string]string

func (p pathProblems) check(rule IngressRule, _ bool) string {
	problem, known := p[rule.Path]
	if known {
		return problem
	}
	if _, err := syntax.Parse(rule.Path, syntax.Perl); err != nil { // the errors of regexp.Compile
		problem = fmt.Sprintf("path %q is not a valid regular expression: %s", rule.Path, err)
	}
	p[rule.Path] = problem
	return problem
}

// namedServices are the services that are built into the connector.
var namedServices = []string{"hello_world", "hello-world", "socks-proxy", "bastion"}

func checkService(rule IngressRule, _ bool) string {
	if code, ok := strings.CutPrefix(rule.Service, "http_status:"); ok {
		return checkStatus(code)
	}
	if slices.Contains(namedServices, rule.Service) ||
		strings.HasPrefix(rule.Service, "unix:") || strings.HasPrefix(rule.Service, "unix+tls:") {
		return ""
	}
	return checkServiceURL(rule.Service)
}

func checkStatus(code string) string {
	if status, err := strconv.Atoi(code); err != nil || status < 100 || status > 999 {
		return fmt.Sprintf("service %q must have a status from 100 to 999", "http_status:"+code)
	}
	return ""
}

func checkServiceURL(service string) string {
	u, err := url.Parse(service)
	switch {
	case err != nil:
		return "service is not a URL" // the parser's error could contain a password
	case u.Scheme == "" || u.Hostname() == "":
		return fmt.Sprintf("service %q must have a scheme and a host", u.Redacted())
	case u.Path != "":
		return fmt.Sprintf("service %q must not have a path or a trailing slash", u.Redacted())
	}
	return ""
}

func checkAccess(rule IngressRule, _ bool) string {
	access := rule.OriginRequest.Access
	if access != nil && access.Required && access.TeamName == "" && len(access.AUDTag) > 0 {
		return "originRequest.access has an audTag but no teamName"
	}
	return ""
}
