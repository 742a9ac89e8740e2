package xds

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// resource is a resource as it is sent. All streams share it.
type resource = discoveryv3.Resource

// resources maps names to resources of one type.
type resources map[string]*resource

// snapshot contains the resources that a Gateway's Envoys should have. It never
// changes.
type snapshot struct {
	// edition identifies the snapshot's clusters, listeners, routes, secrets and limits. A newer
	// snapshot with other ones has a greater edition.
	edition uint64
	byKind  [kinds]resources
	// isPartial reports whether a rejection holds back a part of the publication.
	isPartial bool
}

// isComplete reports whether the snapshot is known and has both listeners' routes.
func (s *snapshot) isComplete() bool { return s != nil && len(s.byKind[routes]) == 2 }

// hasSameEdition reports whether the other snapshot differs at most in its endpoints.
func (s *snapshot) hasSameEdition(other *snapshot) bool {
	for _, k := range []kind{clusters, listeners, routes, secrets, limits} {
		if !haveEqualVersions(s.byKind[k], other.byKind[k]) {
			return false
		}
	}
	return true
}

// haveEqualVersions reports whether both have the same resources.
func haveEqualVersions(a, b resources) bool {
	return maps.EqualFunc(a, b, func(a, b *resource) bool { return a.Version == b.Version })
}

// digest identifies a message that is valid, by its type and its bytes.
type digest struct {
	name protoreflect.FullName
	sum  [sha256.Size]byte
}

// validator validates a Gateway's publications. It does not validate again what the
// last publication contained, nor encode a cluster again that both share.
type validator struct {
	last, next map[digest]struct{}
	// clusters are the last publication's valid clusters.
	clusters map[*clusterv3.Cluster]*resource
}

// newSnapshot returns a publication's resources, without an edition.
func (v *validator) newSnapshot(p *Publication) (*snapshot, error) {
	s := &snapshot{}
	v.next = make(map[digest]struct{}, len(v.last))
	s.byKind[clusters] = make(resources, len(p.Resources.Clusters))
	s.byKind[endpoints] = make(resources, len(p.Resources.Endpoints))
	s.byKind[listeners] = make(resources, len(p.Listeners))
	s.byKind[routes] = make(resources, 2)
	s.byKind[secrets] = make(resources, len(p.Secrets))
	s.byKind[limits] = make(resources, 1)
	errs := []error{v.add(s.byKind[limits], envoy.LimitAccessLog, envoy.AccessLogLimit(p.Resources.Telemetry))}
	for _, secret := range p.Secrets {
		errs = append(errs, v.add(s.byKind[secrets], secret.Name, secret))
	}
	for _, c := range p.Resources.Clusters {
		errs = append(errs, v.addCluster(s.byKind[clusters], c))
	}
	for _, e := range p.Resources.Endpoints {
		errs = append(errs, v.add(s.byKind[endpoints], e.Cluster, assignment(p.Assignments, e.Cluster)))
	}
	for _, l := range p.Listeners {
		errs = append(errs, v.add(s.byKind[listeners], l.Name, l))
	}
	for _, c := range []*routev3.RouteConfiguration{p.Resources.Open, p.Resources.Protected} {
		errs = append(errs, v.addRoutes(s.byKind[routes], c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	v.last = v.next
	v.clusters = make(map[*clusterv3.Cluster]*resource, len(p.Resources.Clusters))
	for _, c := range p.Resources.Clusters {
		v.clusters[c] = s.byKind[clusters][c.Name]
	}
	return s, nil
}

func (v *validator) addCluster(to resources, c *clusterv3.Cluster) error {
	if known := v.clusters[c]; known != nil {
		to[c.Name] = known
		return nil
	}
	return v.add(to, c.Name, c)
}

// assignment returns a cluster's endpoints. Envoy does not use a cluster before it has
// a response, even if the cluster has no endpoints.
func assignment(a envoy.Assignments, cluster string) *endpointv3.ClusterLoadAssignment {
	if assigned := a[cluster]; assigned != nil {
		return assigned
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
}

// add adds a resource after it has validated the message.
func (v *validator) add(to resources, name string, m proto.Message) error {
	r, err := newResource(name, m)
	if err != nil {
		return err
	}
	if err := v.validate(r.Resource.Value, m); err != nil {
		return fmt.Errorf("%T %s: %w", m, name, err)
	}
	to[name] = r
	return nil
}

// addRoutes adds a RouteConfiguration. It validates only virtual hosts that are new.
func (v *validator) addRoutes(to resources, c *routev3.RouteConfiguration) error {
	r, err := newResource(c.Name, c)
	if err != nil {
		return err
	}
	shell := &routev3.RouteConfiguration{Name: c.Name}
	c.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Number() != virtualHosts {
			shell.ProtoReflect().Set(field, value)
		}
		return true
	})
	errs := []error{envoy.Validate(shell)}
	for i, encoded := range encodedVirtualHosts(r.Resource.Value) {
		if err := v.validate(encoded, c.VirtualHosts[i]); err != nil {
			errs = append(errs, fmt.Errorf("virtual host %s: %w", c.VirtualHosts[i].Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("RouteConfiguration %s: %w", c.Name, err)
	}
	to[c.Name] = r
	return nil
}

// validate validates the message unless the last publication contained the same bytes.
func (v *validator) validate(encoded []byte, m proto.Message) error {
	valid := digest{m.ProtoReflect().Descriptor().FullName(), sha256.Sum256(encoded)}
	if _, ok := v.last[valid]; !ok {
		if err := envoy.Validate(m); err != nil {
			return err
		}
	}
	v.next[valid] = struct{}{}
	return nil
}

func newResource(name string, m proto.Message) (*resource, error) {
	body, version, err := envoy.Pack(m)
	if err != nil {
		return nil, err
	}
	return &resource{Name: name, Version: version, Resource: body}, nil
}

// virtualHosts is the field number for RouteConfiguration.virtual_hosts.
var virtualHosts = (&routev3.RouteConfiguration{}).ProtoReflect().Descriptor().Fields().ByName("virtual_hosts").Number()

// encodedVirtualHosts returns each virtual host's bytes in an encoded
// RouteConfiguration.
func encodedVirtualHosts(encoded []byte) [][]byte {
	var hosts [][]byte
	for len(encoded) > 0 {
		number, kind, n := protowire.ConsumeTag(encoded)
		size := protowire.ConsumeFieldValue(number, kind, encoded[n:])
		if number == virtualHosts {
			host, _ := protowire.ConsumeBytes(encoded[n:])
			hosts = append(hosts, host)
		}
		encoded = encoded[n+size:]
	}
	return hosts
}

// withEndpoints returns the snapshot with other endpoints.
func (s *snapshot) withEndpoints(r resources) *snapshot {
	c := *s
	c.byKind[endpoints] = r
	return &c
}
