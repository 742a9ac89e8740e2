package check

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// checkedConditions are the types of conditions that the step objects reports. The steps
// outside the cluster report DNS, certificates and Access.
var checkedConditions = slices.DeleteFunc(slices.Clone(conditions.Types), func(t conditions.Type) bool {
	return t == conditions.TypeAccessReady || t == conditions.TypeDNSReady || t == conditions.TypeEdgeCertificateReady || t == conditions.TypeConnectorsReady
})

// minor are the types of conditions that report a problem with other requests, or with
// later changes: requests that were answered before are still answered.
var minor = []conditions.Type{
	conditions.TypePartiallyInvalid, conditions.TypeRedirectLoop, conditions.TypeHostnameShared, conditions.TypeDataPlaneReady,
}

// servingReasons are the reasons for Programmed with which the tunnel continues to serve
// changed routes or the last configuration.
var servingReasons = []conditions.Reason{conditions.ReasonSettingsNotApplied, conditions.ReasonNewerVersion}

// object is an object whose conditions are checked.
type object struct {
	// name names the object in messages, for example "Gateway infra/shared".
	name string
	// generation is the object's generation; 0 if the conditions have none.
	generation int64
	conditions []metav1.Condition
	// minor are further types whose problems may concern other requests, and ignored are
	// types whose problems another step reports.
	minor, ignored []conditions.Type
}

// adviceUnprocessed is for an object that no controller has processed.
const adviceUnprocessed = "Check that the controller runs, and that it watches the namespace."

// findings reports the conditions that do not have their expected status. After a failure,
// it omits the others, which usually follow from it. It returns nothing if all have it.
func (o object) findings() findings {
	var f findings
	if !slices.ContainsFunc(checkedConditions, func(t conditions.Type) bool { return t.Find(o.conditions) != nil }) {
		f.add(Failed, "%s has no conditions: no controller has processed it.", o.name)
		f.advise(adviceUnprocessed)
		return f
	}
	for _, t := range checkedConditions {
		c := t.Find(o.conditions)
		if c == nil || slices.Contains(o.ignored, t) {
			continue
		}
		if o.isOld(c) {
			f.add(Warning, "%s: the condition %s is for generation %d, but the object has generation %d.", o.name, t, c.ObservedGeneration, o.generation)
			f.advise("Wait a few seconds. If the problem persists, check that the controller runs.")
			return f
		}
		if c.Status != t.Expected() {
			f.add(o.severity(t, c), "%s: %s is %s: %s", o.name, t, c.Status, describe(c))
			if c.Status == metav1.ConditionUnknown {
				f.advise(adviceUnprocessed)
			}
		}
		if f.haveFailed() {
			return f
		}
	}
	return f
}

// isOld reports whether the condition describes an older generation of the object.
func (o object) isOld(c *metav1.Condition) bool {
	return c != nil && o.generation > 0 && c.ObservedGeneration > 0 && c.ObservedGeneration < o.generation
}

// severity returns how a condition without its expected status affects the request.
func (o object) severity(t conditions.Type, c *metav1.Condition) Result {
	serves := t == conditions.TypeProgrammed && slices.ContainsFunc(servingReasons, func(r conditions.Reason) bool { return r.Is(c) })
	if serves || slices.Contains(minor, t) || slices.Contains(o.minor, t) {
		return Warning
	}
	return Failed
}

// describe returns the reason and the message of a condition.
func describe(c *metav1.Condition) string { return fmt.Sprintf("%s: %s", c.Reason, c.Message) }
