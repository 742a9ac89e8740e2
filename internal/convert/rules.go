package convert

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// readTop reads the keys at the top level.
func (c *Configuration) readTop(n *yaml.Node) {
	for _, e := range c.entries(n, "the configuration") {
		switch e.key {
		case "ingress":
			c.readRules(e)
		case "originRequest":
			c.readOrigin(e.value, e.key, c.Origin, c.noteTopAccess)
		case "warp-routing":
			c.readWarpRouting(e)
		default:
			c.readTopKey(e)
		}
	}
	c.readSingleService()
}

// noteTopAccess reports an access block at the top level.
func (c *Configuration) noteTopAccess(e entry) {
	for _, field := range c.entries(e.value, "originRequest.access") {
		c.add(NoteInfo, field.line, "originRequest.access."+field.key,
			"cloudflared enforces access only in a rule's own originRequest, so this had no effect and is not converted",
			"to require it, set access in spec.listenerConfigurations of the TunnelConfiguration")
	}
}

func (c *Configuration) readRules(e entry) {
	if isNull(e.value) {
		return
	}
	if e.value.Kind != yaml.SequenceNode {
		c.fail(e.line, e.key, "must be a list of rules")
		return
	}
	for i, item := range e.value.Content {
		c.Rules = append(c.Rules, c.readRule(i, item))
	}
}

// readRule reads one rule.
func (c *Configuration) readRule(index int, n *yaml.Node) Rule {
	r := Rule{Index: index, Line: n.Line, Own: Settings{}, lines: map[string]int{}}
	path := fmt.Sprintf("ingress[%d]", index)
	for _, e := range c.entries(n, path) {
		r.lines[e.key] = e.line
		key := path + "." + e.key
		switch e.key {
		case "hostname":
			r.Hostname = c.text(e, key)
		case "path":
			r.Path = c.text(e, key)
		case "service":
			r.Service = c.text(e, key)
		case "originRequest":
			c.readOrigin(e.value, key, r.Own, func(a entry) { r.Access = c.readAccess(a, key+".access", r.lines) })
		default:
			c.add(NoteInfo, e.line, key, "cloudflared ignores this key of a rule, and so does convert", "")
		}
	}
	return r
}

// readAccess reads the access block of a rule.
func (c *Configuration) readAccess(e entry, path string, lines map[string]int) *Access {
	lines["originRequest.access"] = e.line
	var access Access
	for _, field := range c.entries(e.value, path) {
		target := map[string]any{
			"required": &access.Required, "teamName": &access.TeamName, "audTag": &access.AUDTag, "environment": &access.Environment,
		}[field.key]
		if target == nil {
			c.add(NoteInfo, field.line, path+"."+field.key, "cloudflared ignores this key, and so does convert", "")
		} else if err := field.value.Decode(target); err != nil {
			c.fail(field.line, path+"."+field.key, "has the wrong type")
		}
	}
	if isNull(e.value) {
		return nil
	}
	return &access
}

// readWarpRouting reports the settings for private networks.
func (c *Configuration) readWarpRouting(e entry) {
	advice := "keep the old tunnel for private networks; the controller keeps the setting on a tunnel that it takes over"
	fields := c.entries(e.value, e.key)
	for _, field := range fields {
		c.add(NoteDifferent, field.line, e.key+"."+field.key, "the controller does not route private networks", advice)
	}
	if len(fields) == 0 {
		c.add(NoteInfo, e.line, e.key, "is empty and has no effect", "")
	}
}

// check adds an error for everything for which cloudflared rejects the configuration.
func (c *Configuration) check() {
	if len(c.Rules) == 0 && len(c.errs) == 0 {
		c.fail(1, "ingress", "there are no rules, so cloudflared answers every request with 503 and there is nothing to convert")
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		c.checkHostname(r, i == len(c.Rules)-1)
		if _, err := regexp.Compile(r.Path); err != nil {
			c.failRule(r, "path", "cloudflared rejects the expression: %v", err)
		}
		c.checkService(r)
		if a := r.Access; a != nil && a.Required && a.TeamName == "" && len(a.AUDTag) > 0 {
			c.failRule(r, "originRequest.access", "has an audTag but no teamName, which cloudflared rejects")
		}
	}
}

func (c *Configuration) failRule(r *Rule, key, format string, args ...any) {
	line, ok := r.lines[key]
	if !ok {
		line = r.Line
	}
	c.fail(line, fmt.Sprintf("ingress[%d].%s", r.Index, key), format, args...)
}

// checkHostname follows validateHostname of cloudflared.
func (c *Configuration) checkHostname(r *Rule, last bool) {
	catchAll := isEveryHost(r.Hostname) && r.Path == ""
	_, _, err := net.SplitHostPort(r.Hostname)
	switch {
	case err == nil:
		c.failRule(r, "hostname", "%q has a port, which cloudflared rejects", r.Hostname)
	case strings.LastIndexByte(r.Hostname, '*') > 0:
		c.failRule(r, "hostname", "%q has a wildcard that is not its first character, which cloudflared rejects", r.Hostname)
	case last && !catchAll:
		c.failRule(r, "hostname", "the last rule must match every request, or cloudflared rejects the configuration: add \"- service: http_status:404\"")
	case !last && catchAll:
		c.failRule(r, "hostname", "only the last rule may match every request, or cloudflared rejects the configuration")
	}
}

// builtIn are the services without a URL.
var builtIn = map[string]bool{"hello_world": true, "hello-world": true, "bastion": true, "socks-proxy": true}

// checkService follows validateIngress of cloudflared.
func (c *Configuration) checkService(r *Rule) {
	if code, ok := strings.CutPrefix(r.Service, "http_status:"); ok {
		c.checkStatus(r, code)
		return
	}
	if builtIn[r.Service] || isSocket(r.Service) || c.effective(r).isTrue("bastionMode") {
		return
	}
	u, err := url.Parse(r.Service)
	switch {
	case r.Service == "":
		c.failRule(r, "service", "the rule has no service, which cloudflared rejects%s", r.misspelledKey("service"))
	case err != nil:
		c.failRule(r, "service", "%q is not a URL", redacted(r.Service))
	case u.Scheme == "" || u.Hostname() == "":
		c.failRule(r, "service", "%q must have a scheme and a host, such as http://web.shop.svc:8080", redacted(r.Service))
	case u.Path != "":
		c.failRule(r, "service", "%q must not have a path, not even a slash at the end", redacted(r.Service))
	}
}

// checkStatus checks the status in a service http_status.
func (c *Configuration) checkStatus(r *Rule, code string) {
	if status, err := strconv.Atoi(code); err != nil || status < 100 || status > 999 {
		c.failRule(r, "service", "%q must have a status from 100 to 999", r.Service)
	}
}

// misspelledKey names the rule's key that resembles a missing one, as the end of a message.
func (r *Rule) misspelledKey(missing string) string {
	if key := suggest.Closest(missing, slices.Sorted(maps.Keys(r.lines))); key != "" && key != missing {
		return fmt.Sprintf("; line %d has the key %q", r.lines[key], key)
	}
	return ""
}

func isSocket(service string) bool {
	return strings.HasPrefix(service, "unix:") || strings.HasPrefix(service, "unix+tls:")
}

// effective returns the settings that apply to a rule.
func (c *Configuration) effective(r *Rule) Settings {
	s := Settings{}
	for _, from := range []Settings{c.Origin, r.Own} {
		for name, value := range from {
			s[name] = value
		}
	}
	return s
}
