package decision

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
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
	plane   *Plane // the last one, or nil
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
		return configured(gateway.Build(&snapshot, o.Gateway), nil)
	}
	known.plane = configured(known.gateway.Build(&snapshot, o.Gateway), known.plane)
	return known.plane
}

// configured returns the plane with the configuration for the result. before is the last plane, or nil.
func configured(result *gateway.Result, before *Plane) *Plane {
	var last *ingress.Rendering
	if before != nil {
		last = before.rendering
	}
	p := &Plane{Result: result, rendering: ingress.Render(result.DataPlane, result.Table, last)}
	switch p.rendering {
	case nil:
	case last:
		p.Configuration, p.Hash = before.Configuration, before.Hash
	default:
		p.Configuration = p.rendering.Configuration()
		p.Hash = p.Configuration.Hash()
	}
	return p
}
