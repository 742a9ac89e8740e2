package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Rivals returns the Tunnels in all that record or request the same tunnel as the object,
// except the object itself. All Tunnels are in one namespace.
func Rivals(object *v1alpha1.Tunnel, all []v1alpha1.Tunnel) []Rival {
	var rivals []Rival
	for i := range all {
		other := &all[i]
		if !AreRivals(object, other) {
			continue
		}
		rivals = append(rivals, Rival{
			Object: other.Name, Recorded: other.Status.TunnelID != "", Older: older(other, object),
			OtherController: other.Spec.ControllerName != object.Spec.ControllerName, HasGatewayName: other.Spec.Existing == nil,
		})
	}
	return rivals
}

// AreRivals reports whether two Tunnels in one namespace record or request the same
// tunnel.
func AreRivals(a, b *v1alpha1.Tunnel) bool {
	id := claimOf(a)
	return id != "" && a.Name != b.Name && id == claimOf(b)
}

// claimOf returns the ID of the tunnel that the Tunnel records or requests, or "".
func claimOf(object *v1alpha1.Tunnel) string {
	if object.Status.TunnelID == "" && object.Spec.Existing != nil {
		return object.Spec.Existing.ID
	}
	return object.Status.TunnelID
}

// older reports whether a takes precedence over b by age.
func older(a, b *v1alpha1.Tunnel) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
