package plan

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// addUnserved records an existing Gateway that the controller does not serve.
func (p *Plan) addUnserved(loaded *state.Loaded, key state.Key, reason string) {
	if loaded.Gateway == nil {
		return
	}
	if loaded.ClassMissing {
		p.missesClass = true
		reason = p.addClassMistake(loaded.Gateway, reason)
	}
	p.unserved[key.NamespacedName] = reason
	if loaded.Managed {
		p.terminating = append(p.terminating, key.NamespacedName)
	}
}

// unservedReason explains why the controller does not serve a Gateway, or returns "" if
// it does.
func unservedReason(loaded *state.Loaded) string {
	switch {
	case loaded.Gateway == nil:
		return "not found"
	case !loaded.Gateway.DeletionTimestamp.IsZero():
		return "being deleted"
	case loaded.ClassMissing:
		return fmt.Sprintf("GatewayClass %q not found", loaded.Gateway.Spec.GatewayClassName)
	case !loaded.Managed:
		return fmt.Sprintf("GatewayClass %q belongs to another controller", loaded.Gateway.Spec.GatewayClassName)
	default:
		return ""
	}
}
