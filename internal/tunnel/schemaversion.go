package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// SchemaVersion is the schema version with which this controller records and serves
// tunnels. A Tunnel's status has the highest version that has served it. A controller
// that supports only lower versions changes neither the tunnel nor its connectors,
// because after a rollback it would open what the newer version protects.
//
// Raise it with every change after which a controller from the release before would
//
//   - serve a hostname that this version protects, or misread a field in the Tunnel's status: a
//     new value, a new phase, or a field whose loss matters;
//   - not serve this version's Envoys: the bootstrap changes, or the names or types of resources
//     that they subscribe to. The listeners are such resources; if only a listener changes, the
//     version stays.
//
// A new version reads the records from all earlier versions, and serves their pods with
// the earlier bootstrap until they are replaced. Version 2 serves the listeners, which
// were in the bootstrap. Version 3 protects hostnames by applications that it manages.
const SchemaVersion int32 = 3

// IsNewer reports whether a newer controller version serves the Tunnel, whose schema
// this version does not support. t can be nil.
func IsNewer(t *v1alpha1.Tunnel) bool { return t != nil && t.Status.SchemaVersion > SchemaVersion }

// versionProblem returns the problem that a newer controller version serves the Tunnel,
// or nil.
func (f Facts) versionProblem() *Problem {
	if !IsNewer(f.Object) {
		return nil
	}
	return problem(conditions.ReasonNewerVersion, "A newer version of the controller serves Tunnel %s (schema version %d; this version supports %d), so this version changes neither the tunnel nor its connectors. "+
		"Run the newer version again, or ask an administrator to set the Tunnel's status.schemaVersion to %d if this version may serve the Gateway by its own rules.",
		f.Object.Name, f.Object.Status.SchemaVersion, SchemaVersion, SchemaVersion)
}

// recordVersionFirst returns the step. If the Tunnel has a lower version, the step
// records this version before anything else happens. A controller with the version
// before then changes nothing.
func (f Facts) recordVersionFirst(step Step) Step {
	if f.Object == nil || f.objectProblem() != nil || f.Object.Status.SchemaVersion == SchemaVersion || step.Record != nil {
		return step // every record has the version
	}
	return Step{Action: Record, Record: f.statusWith(func(*v1alpha1.TunnelStatus) {})}
}
