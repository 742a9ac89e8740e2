package decision

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Memory holds what the last decision about one Gateway leaves for the next one. The zero
// value is empty. It is not safe for concurrent use, and takes over the decision before, of
// which only tables, configurations and reports stay valid. After a panic, it must be
// dropped. See [gateway.Memory].
type Memory struct {
	// planes are by the data plane in the Snapshot, which is empty if the settings decide.
	planes map[v1alpha1.DataPlane]*planeMemory
}

// planeMemory is what the last decision for one data plane leaves.
type planeMemory struct {
	gateway gateway.Memory
	// configuration and hash are those of the table. They are nil and empty if it is nil.
	table         *routing.Table
	configuration *provider.Configuration
	hash          string
	plane         *Plane // the last one
}

// of returns what is known about the data plane. m can be nil.
func (m *Memory) of(plane v1alpha1.DataPlane) *planeMemory {
	if m == nil {
		return nil
	}
	if m.planes == nil {
		m.planes = map[v1alpha1.DataPlane]*planeMemory{}
	}
	if m.planes[plane] == nil {
		m.planes[plane] = &planeMemory{}
	}
	return m.planes[plane]
}

// keep forgets everything that the decision with these planes did not use.
func (m *Memory) keep(planes ...*Plane) {
	if m != nil {
		maps.DeleteFunc(m.planes, func(_ v1alpha1.DataPlane, known *planeMemory) bool { return !slices.Contains(planes, known.plane) })
	}
}

// newPlane decides for the data plane, or for the one in the settings if it is empty. m can
// be nil.
func (m *Memory) newPlane(s *gateway.Snapshot, plane v1alpha1.DataPlane, o Options) *Plane {
	snapshot := *s
	snapshot.DataPlane = plane
	known := m.of(plane)
	if known == nil {
		return configured(gateway.Build(&snapshot, o.Gateway))
	}
	result := known.gateway.Build(&snapshot, o.Gateway)
	if result.Table != nil && result.Table == known.table {
		known.plane = &Plane{Result: result, Configuration: known.configuration, Hash: known.hash}
		return known.plane
	}
	known.plane = configured(result)
	known.table, known.configuration, known.hash = result.Table, known.plane.Configuration, known.plane.Hash
	return known.plane
}

// configured returns the plane with the configuration for the result.
func configured(result *gateway.Result) *Plane {
	p := &Plane{Result: result, Configuration: ingress.ConfigurationFor(result.DataPlane, result.Table)}
	if p.Configuration != nil {
		p.Hash = p.Configuration.Hash()
	}
	return p
}
