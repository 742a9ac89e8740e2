package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rules are the ingress rules of a document that the connector accepts.
type Rules struct {
	rules []rule
}

type rule struct {
	hostname string
	path     *regexp.Regexp // nil: every path
	service  service
	origin   originRequest
}

// service is where a rule sends its requests: a status that the connector
// answers by itself, an origin, or neither for what the connector accepts and
// the simulator does not carry.
type service struct {
	raw    string
	status int
	origin *url.URL
}

type document struct {
	Ingress []struct {
		Hostname      string          `json:"hostname"`
		Path          string          `json:"path"`
		Service       string          `json:"service"`
		OriginRequest json.RawMessage `json:"originRequest"`
	} `json:"ingress"`
	OriginRequest originRequest `json:"originRequest"`
}

// Compile reads a configuration document as the connector does: one bad rule
// and the whole document is an error, which names the rule. A document without
// rules is none.
func Compile(configuration json.RawMessage) (*Rules, error) {
	parsed := document{OriginRequest: connectorDefaults}
	if err := json.Unmarshal(configuration, &parsed); err != nil {
		return nil, fmt.Errorf("parse the document: %w", err)
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

// Match returns the index and the service of the first rule that matches. The
// host may have a port, which is ignored; the path is the decoded one, without
// the query. ok is false when there are no rules.
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
	if r.everyHost() || r.hostname == host {
		return true
	}
	suffix, wildcard := strings.CutPrefix(r.hostname, "*.")
	return wildcard && strings.HasSuffix(host, "."+suffix)
}

func (r rule) everyHost() bool { return r.hostname == "" || r.hostname == "*" }

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

// checkHostname lets more pass than is sensible, because the connector does:
// "*foo.com", upper case and a trailing dot are accepted and match what is
// equal to them.
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
	catchAll := r.everyHost() && r.path == nil
	switch {
	case last && !catchAll:
		return errors.New("the last rule must match every host and path")
	case !last && catchAll:
		return errors.New("a rule that matches everything hides the rules after it")
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
	if builtIn(raw) {
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
	default: // the connector takes any other scheme for TCP
		return service{raw: raw}, nil
	}
	return service{raw: raw, origin: origin}, nil
}

// builtIn reports whether the connector knows the service without a URL.
func builtIn(service string) bool {
	return strings.HasPrefix(service, "unix:") || strings.HasPrefix(service, "unix+tls:") ||
		slices.Contains([]string{"hello_world", "hello-world", "helloworld", "bastion", "socks-proxy"}, service)
}
