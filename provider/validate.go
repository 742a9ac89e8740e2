package provider

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Validate returns an [*InvalidError] that names the first reason for which
// the connector (cloudflared 2026.8.2) would reject c as a whole and keep its
// old document, or nil. It is exactly as strict as the connector.
//
// So it passes what the connector takes without a word and then serves
// otherwise than meant: hostnames like "*foo.com", in upper case or with a
// trailing dot; duplicate rules; unknown URL schemes, which become TCP;
// negative durations; a query or user information in a service URL; no rules
// at all, which answers every request with 503. Whoever makes a document
// watches for those.
func Validate(c Configuration) error {
	for i, rule := range c.Ingress {
		last := i == len(c.Ingress)-1
		for _, check := range ruleChecks {
			if fault := check(rule, last); fault != "" {
				return &InvalidError{Rule: i, Message: fault}
			}
		}
	}
	return nil
}

// ruleChecks are the connector's own. Each says what is wrong with a rule, or
// nothing; last is true for the document's last rule.
var ruleChecks = []func(rule IngressRule, last bool) string{
	checkHostname,
	checkCatchAll,
	checkPath,
	checkService,
	checkAccess,
}

func checkHostname(rule IngressRule, _ bool) string {
	if _, _, err := net.SplitHostPort(rule.Hostname); err == nil {
		return fmt.Sprintf("hostname %q contains a port", rule.Hostname)
	}
	if strings.LastIndex(rule.Hostname, "*") > 0 {
		return fmt.Sprintf("hostname %q has a wildcard after its first character", rule.Hostname)
	}
	return ""
}

func checkCatchAll(rule IngressRule, last bool) string {
	catchesAll := (rule.Hostname == "" || rule.Hostname == "*") && rule.Path == ""
	if last && !catchesAll {
		return "the last rule must match every request, so it has neither hostname nor path"
	}
	if !last && catchesAll {
		return "only the last rule may match every request"
	}
	return ""
}

func checkPath(rule IngressRule, _ bool) string {
	if _, err := regexp.Compile(rule.Path); err != nil {
		return fmt.Sprintf("path %q is not a regular expression: %s", rule.Path, err)
	}
	return ""
}

// namedServices are those that the connector brings along.
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
		return fmt.Sprintf("service http_status:%s is not a number from 100 to 999", code)
	}
	return ""
}

func checkServiceURL(service string) string {
	u, err := url.Parse(service)
	switch {
	case err != nil:
		return "service is not a URL" // the parser's error would repeat a password in it
	case u.Scheme == "" || u.Hostname() == "":
		return fmt.Sprintf("service %q needs a scheme and a host", u.Redacted())
	case u.Path != "":
		return fmt.Sprintf("service %q has a path, if only a slash", u.Redacted())
	}
	return ""
}

func checkAccess(rule IngressRule, _ bool) string {
	access := rule.OriginRequest.Access
	if access != nil && access.Required && access.TeamName == "" && len(access.AUDTag) > 0 {
		return "originRequest.access has an audTag without a teamName"
	}
	return ""
}
