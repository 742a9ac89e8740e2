package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// RecordedDataPlane returns the data plane that the Tunnel records. A Tunnel with a
// tunnel or a configuration, but without a recorded data plane, has ingress rules. The
// result is empty for nil and for a Tunnel that has recorded nothing: the data plane in
// the settings then applies. A data plane that only a newer version knows counts as not
// recorded.
func RecordedDataPlane(t *v1alpha1.Tunnel) v1alpha1.DataPlane {
	switch {
	case t == nil:
		return ""
	case t.Status.DataPlane == v1alpha1.DataPlaneEnvoy, t.Status.DataPlane == v1alpha1.DataPlaneIngressRules:
		return t.Status.DataPlane
	case t.Status.TunnelID != "" || t.Status.Configuration.Hash != "":
		return v1alpha1.DataPlaneIngressRules
	default:
		return ""
	}
}

// RunsEnvoy reports whether the Tunnel's connectors have Envoy now, according to the
// record.
func RunsEnvoy(t *v1alpha1.Tunnel) bool {
	if t != nil && t.Status.DataPlaneChange != nil {
		return t.Status.DataPlaneChange.Phase != v1alpha1.DataPlaneRemovingEnvoy
	}
	return RecordedDataPlane(t) == v1alpha1.DataPlaneEnvoy
}

// UsesIdentity reports whether the Tunnel's Envoys need a certificate, even while a
// change adds or removes the Envoys.
func UsesIdentity(t *v1alpha1.Tunnel) bool {
	return RunsEnvoy(t) || t != nil && t.Status.DataPlaneChange != nil
}

// NeedsBoth reports whether both data planes need a routing table: while the data plane
// changes, and while the settings ask for another data plane than the Tunnel records.
func NeedsBoth(t *v1alpha1.Tunnel, wanted v1alpha1.DataPlane) bool {
	recorded := RecordedDataPlane(t)
	return recorded != "" && (recorded != wanted || t.Status.DataPlaneChange != nil)
}

// recordDataPlane records the data plane before the first claim and before the first
// request to Cloudflare. Only the rule changeDataPlane replaces a recorded data plane.
// Without valid settings, a Tunnel that has recorded nothing waits, because it must not
// be located before its data plane is known.
func recordDataPlane(f Facts) Step {
	if f.Object.Status.DataPlane != "" {
		return Step{}
	}
	plane := RecordedDataPlane(f.Object)
	if plane == "" && f.Desired != nil {
		plane = f.Desired.DataPlane
	}
	switch {
	case plane != "":
		return Step{Action: Record, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) { s.DataPlane = plane })}
	case f.Object.Spec.Paused:
		return Step{} // the next rule is pause
	default:
		return Step{Action: None}
	}
}

// hasOtherDataPlane reports whether the desired configuration is for another data plane
// than the Tunnel records. It was then built from an outdated Tunnel.
func (f Facts) hasOtherDataPlane() bool {
	recorded := RecordedDataPlane(f.Object)
	return recorded != "" && recorded != f.Desired.ConfigurationDataPlane
}
