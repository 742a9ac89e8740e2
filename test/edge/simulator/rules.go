package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rules are the ingress rules in a valid configuration.
type Rules struct {
	rules []rule
}

type rule struct {
	hostname string
	path     *regexp.Regexp // nil: every path
	service  service
	origin   originRequest
}

// service is a rule's destination: a status or an origin. Both are unset for a service
// that the connector accepts and the simulator does not support.
type service struct {
	raw    string
	status int
	origin *url.URL
}

// isLoopback reports whether the origin is on the connector's own machine.
func (s service) isLoopback() bool {
	host := s.origin.Hostname()
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

type tunnelConfiguration struct {
	Ingress []struct {
		Hostname      string          `json:"hostname"`
		Path          string          `json:"path"`
		Service       string          `json:"service"`
		OriginRequest json.RawMessage `json:"originRequest"`
	} `json:"ingress"`
	OriginRequest originRequest `json:"originRequest"`
}

// Compile parses a configuration as the connector does. If one rule is invalid,
// the whole configuration is invalid, and the error names the rule. A
// configuration without rules is valid.
func Compile(configuration json.RawMessage) (*Rules, error) {
	parsed := tunnelConfiguration{OriginRequest: connectorDefaults}
	if err := json.Unmarshal(configuration, &parsed); err != nil {
		return nil, fmt.Errorf("parse the configuration: %w", err)
	}
	compiled := &Rules{}
	for i, r := range parsed.Ingress {
		next, err := compileRule(r.Hostname, r.Path, r.Service)
		if err == nil {
			next.origin, err = parsed.OriginRequest.override(r.OriginRequest)
		}
		if err == nil {
			err = checkCatchAll(next, i == len(parsed.Ingress)-1)
		}
		if err != nil {
			return nil, fmt.Errorf("ingress[%d]: %w", i, err)
		}
		compiled.rules = append(compiled.rules, next)
	}
	return compiled, nil
}

// Match returns the index and service of the first rule that matches. It ignores a port
// in host. path is the decoded path without the query. ok is false if there are no rules.
func (r *Rules) Match(host, path string) (index int, service string, ok bool) {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	for i, candidate := range r.rules {
		if candidate.matches(host, path) {
			return i, candidate.service.raw, true
		}
	}
	return 0, "", false
}

func (r rule) matches(host, path string) bool {
	return r.matchesHost(host) && (r.path == nil || r.path.MatchString(path))
}

func (r rule) matchesHost(host string) bool {
	if r.matchesEveryHost() || r.hostname == host {
		return true
	}
	suffix, wildcard := strings.CutPrefix(r.hostname, "*.")
	return wildcard && strings.HasSuffix(host, "."+suffix)
}

func (r rule) matchesEveryHost() bool { return r.hostname == "" || r.hostname == "*" }

func compileRule(hostname, path, service string) (rule, error) {
	if err := checkHostname(hostname); err != nil {
		return rule{}, err
	}
	compiled := rule{hostname: hostname}
	var err error
	if path != "" {
		if compiled.path, err = regexp.Compile(path); err != nil {
			return rule{}, fmt.Errorf("path: %w", err)
		}
	}
	compiled.service, err = parseService(service)
	return compiled, err
}

// checkHostname accepts the same hostnames as the connector. These include
// "*foo.com", upper case and a trailing dot; such a hostname matches only a host
// that is equal to it.
func checkHostname(hostname string) error {
	if _, _, err := net.SplitHostPort(hostname); err == nil {
		return fmt.Errorf("hostname %q has a port", hostname)
	}
	if strings.LastIndexByte(hostname, '*') > 0 {
		return fmt.Errorf("hostname %q has a wildcard that is not its first character", hostname)
	}
	return nil
}

func checkCatchAll(r rule, last bool) error {
	catchAll := r.matchesEveryHost() && r.path == nil
	switch {
	case last && !catchAll:
		return errors.New("the last rule must match every host and path")
	case !last && catchAll:
		return errors.New("a rule that matches every request must be the last rule")
	default:
		return nil
	}
}

func parseService(raw string) (service, error) {
	if code, ok := strings.CutPrefix(raw, "http_status:"); ok {
		status, err := strconv.Atoi(code)
		if err != nil || status < 100 || status > 999 {
			return service{}, fmt.Errorf("service %q: the status must be between 100 and 999", raw)
		}
		return service{raw: raw, status: status}, nil
	}
	if isBuiltInService(raw) {
		return service{raw: raw}, nil
	}
	return parseOrigin(raw)
}

func parseOrigin(raw string) (service, error) {
	origin, err := url.Parse(raw)
	switch {
	case err != nil:
		return service{}, fmt.Errorf("service: %w", err)
	case origin.Scheme == "" || origin.Hostname() == "":
		return service{}, fmt.Errorf("service %q must have a scheme and a host", raw)
	case origin.Path != "":
		return service{}, fmt.Errorf("service %q must not have a path", raw)
	}
	switch origin.Scheme {
	case "ws":
		origin.Scheme = "http"
	case "wss":
		origin.Scheme = "https"
	case "http", "https":
	default: // the connector treats any other scheme as TCP
		return service{raw: raw}, nil
	}
	return service{raw: raw, origin: origin}, nil
}

// isBuiltInService reports whether the connector accepts the service although it is not
// an origin URL.
func isBuiltInService(service string) bool {
	return strings.HasPrefix(service, "unix:") || strings.HasPrefix(service, "unix+tls:") ||
		slices.Contains([]string{"hello_world", "hello-world", "helloworld", "bastion", "socks-proxy"}, service)
}
