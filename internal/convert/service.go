package convert

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// destination says where the requests of a rule go.
type destination struct {
	// hostname is the hostname of the listener. reachable reports whether a listener can
	// have it.
	hostname  string
	reachable bool
	// backend is nil for a rule that has no Service.
	backend *backend
	// status is the status of a rule http_status:<status>, or 0.
	status int
	path   pathForm
	// compiled is the rule's path expression.
	compiled *regexp.Regexp
	// settings differ from the settings for all rules.
	settings Settings
	access   *Access
	// noted reports whether there is a note about the rule.
	noted bool
}

// backend is a Service with a port.
type backend struct {
	namespace, name string
	port            int32
	tls             bool
	// host is the host in the URL.
	host string
}

// findDestinations finds out where the requests of each rule go.
func (c *converter) findDestinations() {
	c.destinations = make([]destination, len(c.input.Rules))
	for i := range c.input.Rules {
		r, d := &c.input.Rules[i], &c.destinations[i]
		var problem string
		if d.hostname, problem = listenerHostname(r.Hostname); problem != "" {
			c.note(NoteDifferent, r, "hostname", strconv.Quote(r.Hostname)+" "+problem, "correct the hostname, or omit the rule")
			continue
		}
		if d.hostname != r.Hostname && !isEveryHost(r.Hostname) {
			c.note(NoteInfo, r, "hostname", fmt.Sprintf("%q becomes %q, the form that browsers send", r.Hostname, d.hostname), "")
		}
		d.reachable, d.path, d.compiled = true, parsePath(r.Path), regexp.MustCompile(r.Path)
		c.findBackend(r, d)
		if d.backend != nil {
			d.settings = c.backendSettings(r, d.backend)
			d.access = c.access(r, d)
		}
	}
}

// findBackend sets the destination's backend or status, or notes why it has none.
func (c *converter) findBackend(r *Rule, d *destination) {
	if code, ok := strings.CutPrefix(r.Service, "http_status:"); ok {
		d.status, _ = strconv.Atoi(code) // valid
		return
	}
	b, problem, advice := c.backendOf(c.input, r)
	key := backend{namespace: b.namespace, name: b.name, port: b.port}
	tls, used := c.protocols[key]
	switch {
	case problem != "":
		c.note(NoteDifferent, r, "service", problem, advice)
	case used && tls != b.tls:
		c.note(NoteDifferent, r, "service", fmt.Sprintf("another rule uses port %d of Service %s/%s with the other scheme, but a port has only one appProtocol", b.port, b.namespace, b.name), "add a port to the Service")
	default:
		c.protocols[key] = b.tls
		d.backend = &b
		c.noteService(r, d.backend)
	}
}

// The advice for services without an equivalent.
const (
	keepOnTunnel = "keep the rule on the old tunnel, whose DNS record stays as it is"
	outsideHost  = "create a Service and an EndpointSlice for it, as in docs/guides/outside-hosts.md"
)

// backendOf returns the Service that a rule forwards to, or why there is none and what
// to do.
func (o Options) backendOf(input *Configuration, r *Rule) (b backend, problem, advice string) {
	u, err := url.Parse(r.Service)
	switch {
	case isSocket(r.Service):
		return b, "the connectors are separate pods, which cannot reach a socket in a file system", "make the backend listen on a port, and create a Service for it"
	case input.effective(r).isTrue("bastionMode"):
		return b, `a bastion carries connections of "cloudflared access", which the controller does not serve`, keepOnTunnel
	case builtIn[r.Service] || err != nil:
		return b, fmt.Sprintf("the controller has no equivalent for %q", redacted(r.Service)), keepOnTunnel
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ws" && u.Scheme != "wss":
		return b, fmt.Sprintf(`%s:// carries connections of "cloudflared access", which the controller does not serve`, u.Scheme), keepOnTunnel
	}
	return o.serviceOf(u)
}

// serviceOf returns the Service in a URL.
func (o Options) serviceOf(u *url.URL) (b backend, problem, advice string) {
	tls := u.Scheme == "https" || u.Scheme == "wss"
	port, err := strconv.ParseUint(cmp.Or(u.Port(), map[bool]string{false: "80", true: "443"}[tls]), 10, 16)
	name, namespace, found := o.serviceName(u.Hostname())
	_, ipErr := netip.ParseAddr(u.Hostname())
	switch {
	case err != nil || port == 0:
		return b, "the port is not valid", "correct the port"
	case u.Hostname() == "localhost" || ipErr == nil:
		return b, u.Hostname() + " is an address, and the connectors are separate pods", outsideHost
	case !found:
		return b, u.Hostname() + " is not the name of a Service", outsideHost
	case namespace == "":
		return b, fmt.Sprintf("the namespace of Service %s is not known", name), "name the namespace of cloudflared with --namespace"
	}
	return backend{namespace, name, int32(port), tls, u.Hostname()}, "", ""
}

// noteService notes what the user must know about a Service.
func (c *converter) noteService(r *Rule, b *backend) {
	if strings.Count(b.host, ".") == 1 {
		c.note(NoteInfo, r, "service", fmt.Sprintf("%s is treated as Service %s in namespace %s", b.host, b.name, b.namespace), "")
	}
	if u, err := url.Parse(r.Service); err == nil && (u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		c.note(NoteInfo, r, "service", "cloudflared ignores the user name, query and fragment of a service, and so does convert", "")
	}
	if b.tls {
		c.note(NoteStep, r, "service", fmt.Sprintf("connectors use TLS only if port %d of Service %s/%s has appProtocol https", b.port, b.namespace, b.name),
			fmt.Sprintf(`run kubectl patch service -n %s %s -p '{"spec":{"ports":[{"port":%d,"appProtocol":"https"}]}}'`, b.namespace, b.name, b.port))
	}
}

// serviceName returns the Service that a name in a pod stands for: name, name.namespace or
// name.namespace.svc, with or without the cluster's domain. The namespace is empty if the
// pod's namespace is not known.
func (o Options) serviceName(host string) (name, namespace string, found bool) {
	host = strings.TrimSuffix(host, ".")
	full := strings.TrimSuffix(host, "."+o.ClusterDomain)
	labels := strings.Split(strings.TrimSuffix(full, ".svc"), ".")
	switch {
	case len(labels) == 1 && full == host && !strings.HasSuffix(host, ".svc"):
		name, namespace = labels[0], o.Namespace
	case len(labels) == 2 && (full == host || strings.HasSuffix(full, ".svc")):
		name, namespace = labels[0], labels[1]
	default:
		return "", "", false
	}
	valid := len(validation.IsDNS1035Label(name)) == 0 && (namespace == "" || len(validation.IsDNS1123Label(namespace)) == 0)
	return name, namespace, valid
}

// backendSettings returns the settings for a rule with a Service.
func (c *converter) backendSettings(r *Rule, b *backend) Settings {
	settings, effective := c.own(r), c.input.effective(r)
	switch pool := effective.text("caPool"); {
	case pool == "":
	case b.tls && !effective.isTrue("noTLSVerify"):
		c.addPolicy(r, b, effective)
	default:
		c.note(NoteInfo, r, "originRequest.caPool", fmt.Sprintf("the file %q has no effect, because cloudflared does not verify the certificate of this backend", pool), "")
	}
	// The connector checks the certificate for the name in the URL, which becomes the
	// Service's full name.
	if b.tls && effective.text("originServerName") == "" && !effective.isTrue("matchSNItoHost") && !effective.isTrue("noTLSVerify") && b.host != c.fullName(b) {
		settings["originServerName"] = Setting{Value: b.host}
	}
	return settings
}

// fullName returns the DNS name by which connectors reach the Service.
func (o Options) fullName(b *backend) string {
	return b.name + "." + b.namespace + ".svc." + o.ClusterDomain
}
