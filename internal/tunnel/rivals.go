package tunnel

import "github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"

// Rivals returns the other Tunnels that record the same tunnel as the object, or
// ask for it. All are Tunnels of one namespace; the object may be among them.
func Rivals(object *v1alpha1.Tunnel, all []v1alpha1.Tunnel) []Rival {
	var rivals []Rival
	for i := range all {
		other := &all[i]
		if !AreRivals(object, other) {
			continue
		}
		rivals = append(rivals, Rival{
			Object: other.Name, Recorded: other.Status.TunnelID != "", Older: older(other, object),
			OtherController: other.Spec.ControllerName != object.Spec.ControllerName, ByName: other.Spec.Existing == nil,
		})
	}
	return rivals
}

// AreRivals reports whether two Tunnels of one namespace record the same tunnel, or
// ask for it.
func AreRivals(a, b *v1alpha1.Tunnel) bool {
	id := claimOf(a)
	return id != "" && a.Name != b.Name && id == claimOf(b)
}

// claimOf returns the tunnel that the Tunnel records or asks for, or "".
func claimOf(object *v1alpha1.Tunnel) string {
	if object.Status.TunnelID == "" && object.Spec.Existing != nil {
		return object.Spec.Existing.ID
	}
	return object.Status.TunnelID
}

// older reports whether a takes precedence over b by its age.
func older(a, b *v1alpha1.Tunnel) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
