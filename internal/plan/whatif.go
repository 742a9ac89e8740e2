package plan

import (
	"fmt"
	"maps"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// WhatIf describes a plan for other settings than those in the source.
type WhatIf struct {
	// DataPlane is the data plane of every Gateway, after the change to it has ended.
	DataPlane v1alpha1.DataPlane `json:"dataPlane"`
}

// newWhatIf returns the description for the options, or nil for a plan with the source's
// settings.
func newWhatIf(o Options) *WhatIf {
	if o.DataPlane == "" {
		return nil
	}
	return &WhatIf{DataPlane: o.DataPlane}
}

// String returns a sentence for people.
func (w *WhatIf) String() string {
	return fmt.Sprintf("This is a what-if: it shows every Gateway with the data plane %s, independently of the settings.", w.DataPlane)
}

// selectDataPlane returns a copy of the Snapshot whose GatewayClass selects the data plane.
func selectDataPlane(s *gateway.Snapshot, plane v1alpha1.DataPlane) *gateway.Snapshot {
	changed := *s
	if s.Class != nil {
		class := *s.Class
		class.Annotations = maps.Clone(class.Annotations)
		if class.Annotations == nil {
			class.Annotations = map[string]string{}
		}
		class.Annotations[v1alpha1.DataPlaneAnnotation] = string(plane)
		changed.Class = &class
	}
	if c := s.ClassConfiguration; c != nil && c.Spec.DataPlane != nil {
		configuration := *c
		configuration.Spec.DataPlane = &plane
		changed.ClassConfiguration = &configuration
	}
	return &changed
}

// shownPlane returns the decision that a plan shows: for the data plane in effect, or in a
// what-if, for the data plane after the change.
func shownPlane(d *decision.Decision, t *v1alpha1.Tunnel, whatIf v1alpha1.DataPlane) *decision.Plane {
	plane := d.Plane(t)
	if other := d.Other(t); other != nil && other.Result.DataPlane == whatIf {
		return other
	}
	return plane
}
