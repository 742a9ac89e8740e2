package xds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// validator turns a Gateway's publications into snapshots. It remembers the last valid one:
// a message that both share, identified by its address, is neither encoded nor validated
// again. In a changed RouteConfiguration, it validates only virtual hosts that are new.
type validator struct {
	// last are the last publication's resources, and messages what they were made of.
	last     [kinds]*set
	messages [kinds]map[string]proto.Message
	// hosts counts the valid virtual hosts by their content, and hostsOf lists them by
	// RouteConfiguration.
	hosts   map[digest]int
	hostsOf map[string][]digest
}

// digest identifies a valid virtual host by its bytes.
type digest [sha256.Size]byte

// candidate is a publication that is not known to be valid yet.
type candidate struct {
	*validator
	snapshot snapshot
	// messages and newHostsOf are what the validator does not have, and removed the names that
	// only the validator has.
	messages   [kinds]map[string]proto.Message
	removed    [kinds][]string
	newHostsOf map[string][]digest
	// isValid reports which virtual hosts are new and valid.
	isValid map[digest]bool
	errs    []error
}

// named is a message with a name of its own.
type named interface {
	proto.Message
	GetName() string
}

// newSnapshot returns a publication's resources, without an edition.
func (v *validator) newSnapshot(p *Publication) (*snapshot, error) {
	c := &candidate{validator: v, newHostsOf: map[string][]digest{}, isValid: map[digest]bool{}}
	c.add(limits, maps.All(map[string]proto.Message{envoy.LimitAccessLog: envoy.AccessLogLimit(p.Resources.Telemetry)}))
	c.add(secrets, messagesOf(p.Secrets))
	c.add(clusters, messagesOf(p.Resources.Clusters))
	c.add(endpoints, v.assignments(p))
	c.add(listeners, messagesOf(p.Listeners))
	c.add(routes, messagesOf(p.Resources.Routes))
	c.add(scopes, messagesOf(p.Resources.Scopes))
	c.errs = append(c.errs, checkScopes(p.Resources))
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	v.accept(c)
	c.snapshot.whole = &wholeRoutes{}
	return &c.snapshot, nil
}

func messagesOf[T named](all []T) iter.Seq2[string, proto.Message] {
	return func(yield func(string, proto.Message) bool) {
		for _, m := range all {
			if !yield(m.GetName(), m) {
				return
			}
		}
	}
}

// assignments returns the endpoints for the publication's clusters. Envoy does not use a
// cluster before it has a response, even if the cluster has no endpoints.
func (v *validator) assignments(p *Publication) iter.Seq2[string, proto.Message] {
	return func(yield func(string, proto.Message) bool) {
		for i := range p.Resources.Endpoints {
			name := p.Resources.Endpoints[i].Cluster
			m := p.Assignments[name]
			if m == nil {
				m, _ = v.messages[endpoints][name].(*endpointv3.ClusterLoadAssignment)
			}
			if p.Assignments.IsEmpty(name) && (m == nil || len(m.Endpoints) > 0) {
				m = assignment(p.Assignments, name)
			}
			if !yield(name, m) {
				return
			}
		}
	}
}

// assignment returns a cluster's endpoints.
func assignment(a envoy.Assignments, cluster string) *endpointv3.ClusterLoadAssignment {
	if assigned := a[cluster]; assigned != nil {
		return assigned
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
}

// checkScopes checks that Envoy gets all RouteConfigurations before it uses them.
func checkScopes(r *envoy.Resources) error {
	wanted := map[string]bool{}
	if len(r.Scopes) == 0 {
		wanted[envoy.ListenerOpen], wanted[envoy.ListenerProtected] = false, false
	}
	for _, scope := range r.Scopes {
		wanted[scope.RouteConfigurationName] = wanted[scope.RouteConfigurationName] || envoy.IsWarmingScope(scope.Name)
	}
	var errs []error
	for _, c := range r.Routes {
		isWarming, ok := wanted[c.Name]
		if !ok || len(r.Scopes) > 0 && !isWarming {
			errs = append(errs, fmt.Errorf("RouteConfiguration %s: Envoy does not request it", c.Name))
		}
		delete(wanted, c.Name)
	}
	for name := range wanted {
		errs = append(errs, fmt.Errorf("RouteConfiguration %s: it is missing", name))
	}
	return errors.Join(errs...)
}

// add adds the messages to the snapshot.
func (c *candidate) add(k kind, all iter.Seq2[string, proto.Message]) {
	last, before := c.last[k], c.validator.messages[k]
	c.messages[k] = map[string]proto.Message{}
	added, kept := resources{}, 0
	for name, m := range all {
		if known, ok := before[name]; ok {
			kept++
			if known == m {
				continue
			}
		}
		r, err := c.newResource(last.get(name), name, m)
		if err != nil {
			c.errs = append(c.errs, err)
			continue
		}
		added[name], c.messages[k][name] = r, m
	}
	if kept < len(before) {
		c.removed[k] = missingNames(before, all)
	}
	c.snapshot.byKind[k] = last.derive(added, c.removed[k])
}

// missingNames returns the names that only the first ones have.
func missingNames(before map[string]proto.Message, all iter.Seq2[string, proto.Message]) []string {
	present := make(map[string]struct{}, len(before))
	for name := range all {
		present[name] = struct{}{}
	}
	var missing []string
	for name := range before {
		if _, ok := present[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// newResource encodes a message and, unless the last resource with the name has the same
// content, validates it.
func (c *candidate) newResource(last *resource, name string, m proto.Message) (*resource, error) {
	body, version, err := envoy.Pack(m)
	if err != nil {
		return nil, err
	}
	if last.GetVersion() == version {
		return last, nil
	}
	if routes, ok := m.(*routev3.RouteConfiguration); ok {
		err = c.validateRoutes(routes, body.Value)
	} else {
		err = envoy.Validate(m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", m.ProtoReflect().Descriptor().Name(), name, err)
	}
	return &resource{Name: name, Version: version, Resource: body}, nil
}

// validateRoutes validates a RouteConfiguration, but only the virtual hosts that are new.
func (c *candidate) validateRoutes(r *routev3.RouteConfiguration, encoded []byte) error {
	shell := &routev3.RouteConfiguration{Name: r.Name}
	r.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Number() != fieldVirtualHosts {
			shell.ProtoReflect().Set(field, value)
		}
		return true
	})
	errs := []error{envoy.Validate(shell)}
	hosts := make([]digest, 0, len(r.VirtualHosts))
	for field := range fieldsOf(encoded) {
		if field.number != fieldVirtualHosts {
			continue
		}
		host, content := r.VirtualHosts[len(hosts)], digest(sha256.Sum256(field.content))
		hosts = append(hosts, content)
		if c.hosts[content] > 0 || c.isValid[content] {
			continue
		}
		if err := envoy.Validate(host); err != nil {
			errs = append(errs, fmt.Errorf("virtual host %s: %w", host.Name, err))
			continue
		}
		c.isValid[content] = true
	}
	c.newHostsOf[r.Name] = hosts
	return errors.Join(errs...)
}

// accept remembers a valid publication.
func (v *validator) accept(c *candidate) {
	if v.hosts == nil {
		v.hosts, v.hostsOf = map[digest]int{}, map[string][]digest{}
	}
	for k := range kinds {
		if v.last[k] = c.snapshot.byKind[k]; v.messages[k] == nil {
			v.messages[k] = map[string]proto.Message{}
		}
		maps.Copy(v.messages[k], c.messages[k])
		for _, name := range c.removed[k] {
			delete(v.messages[k], name)
		}
	}
	for name, hosts := range c.newHostsOf {
		v.count(hosts, 1)
		v.count(v.hostsOf[name], -1)
		v.hostsOf[name] = hosts
	}
	for _, name := range c.removed[routes] {
		v.count(v.hostsOf[name], -1)
		delete(v.hostsOf, name)
	}
}

func (v *validator) count(hosts []digest, change int) {
	for _, host := range hosts {
		if v.hosts[host] += change; v.hosts[host] == 0 {
			delete(v.hosts, host)
		}
	}
}

// newEndpoints returns the endpoints for a cluster as a resource.
func newEndpoints(cluster string, a *endpointv3.ClusterLoadAssignment) (*resource, error) {
	return (&candidate{}).newResource(nil, cluster, a)
}

// replaceEndpoints remembers endpoints that were published on their own.
func (v *validator) replaceEndpoints(all *set, messages map[string]proto.Message) {
	v.last[endpoints] = all
	maps.Copy(v.messages[endpoints], messages)
}
