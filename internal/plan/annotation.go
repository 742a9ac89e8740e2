package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// annotation is one of this project's annotations.
type annotation struct {
	name string
	// kind is the only kind on which the annotation has an effect.
	kind string
	// check describes a value's problem, as a predicate whose subject is the
	// annotation. It returns "" for a permitted value.
	check func(value string) string
}

var annotations = []annotation{
	{v1alpha1.AllowDeletionAnnotation, gateway.KindGateway, trueOrFalse},
	{v1alpha1.DataPlaneAnnotation, kindGatewayClass, validDataPlane},
	{v1alpha1.PausedAnnotation, gateway.KindGateway, trueOrFalse},
	{v1alpha1.RotateTokenAnnotation, "Tunnel", notEmpty},
	{v1alpha1.ReconcileAnnotation, "Tunnel", notEmpty},
	{v1alpha1.AdoptRecordsAnnotation, "Tunnel", validAdoptions[v1alpha1.RecordAdoption]("dns adopt")},
	{v1alpha1.AdoptApplicationsAnnotation, "Tunnel", validAdoptions[v1alpha1.ApplicationAdoption]("access adopt")},
	{hostnames.Annotation, "Namespace", validHostnames},
	{v1alpha1.BundleVersionAnnotation, "CustomResourceDefinition", notEmpty},
	{connector.TokenVersionAnnotation, "Pod", notEmpty},
}

// labels are all labels that this project uses. The controller sets them.
var labels = []string{connector.TunnelLabel, connector.GatewayNamespaceLabel}

// noEffect begins the description of a value that has no effect. The API server accepts
// very long values.
const noEffect = "has no effect with the value %.80q"

func trueOrFalse(value string) string { return oneOf(value, "true", "false") }

func validDataPlane(value string) string {
	return oneOf(value, string(v1alpha1.DataPlaneEnvoy), string(v1alpha1.DataPlaneIngressRules))
}

// oneOf accepts two values.
func oneOf(value, first, second string) string {
	if value == first || value == second {
		return ""
	}
	if closest := suggest.Closest(value, []string{first, second}); closest != "" {
		return suggest.DidYouMean(fmt.Sprintf(noEffect, value), closest)
	}
	return fmt.Sprintf(noEffect+"; the value must be %s or %s", value, first, second)
}

// validAdoptions accepts what the command dns adopt writes.
func validAdoptions[T any](command string) func(value string) string {
	return func(value string) string {
		var entries []T
		if err := json.Unmarshal([]byte(value), &entries); err != nil {
			return fmt.Sprintf(noEffect+"; the command %s writes the value", value, command)
		}
		return ""
	}
}

func notEmpty(value string) string {
	if value != "" {
		return ""
	}
	return fmt.Sprintf(noEffect+"; the value must not be empty", value)
}

func validHostnames(value string) string {
	invalid := hostnames.ParsePermission(value).Invalid
	if len(invalid) == 0 {
		return ""
	}
	return fmt.Sprintf("has the entry %.80q, which permits nothing; use DNS names in lower case, wildcards such as *.example.com, or *", invalid[0])
}

// annotationProblems describes an object's annotations that have no effect, and the
// labels that should be annotations.
func annotationProblems(kind string, object client.Object) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(object.GetAnnotations())) {
		if problem := annotationProblem(kind, name, object.GetAnnotations()[name]); problem != "" {
			problems = append(problems, fmt.Sprintf("annotation %s %s", name, problem))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object.GetLabels())) {
		if problem := labelProblem(name); problem != "" {
			problems = append(problems, fmt.Sprintf("label %s %s", name, problem))
		}
	}
	return problems
}

// labelProblem describes a label's problem, as a predicate whose subject is the label.
// It returns "" for another project's label.
func labelProblem(name string) string {
	switch closest, ofProject := closestAnnotation(name); {
	case slices.Contains(labels, name):
		return ""
	case closest == name:
		return "has no effect; set it as an annotation"
	case closest != "":
		return suggest.DidYouMean("does not exist", "the annotation "+closest)
	case ofProject:
		return "does not exist"
	}
	return ""
}

// annotationProblem describes an annotation's problem, as a predicate whose subject is
// the annotation. It returns "" for another project's annotation.
func annotationProblem(kind, name, value string) string {
	i := slices.IndexFunc(annotations, func(a annotation) bool { return a.name == name })
	switch {
	case i < 0:
		if closest, ofProject := closestAnnotation(name); ofProject {
			return suggest.DidYouMean("does not exist", closest)
		}
		return ""
	case annotations[i].kind != kind:
		return fmt.Sprintf("has no effect on kind %s; it belongs on kind %s", kind, annotations[i].kind)
	}
	return annotations[i].check(value)
}

// closestAnnotation returns the annotation in this project that the name resembles, or
// "". It also returns whether the name must be an annotation of this project, because
// it has the project's domain or resembles such an annotation.
func closestAnnotation(name string) (closest string, ofProject bool) {
	domain, name, found := strings.Cut(name, "/")
	if !found || suggest.Closest(domain, []string{v1alpha1.GroupName}) == "" {
		return "", false
	}
	var names []string
	for _, a := range annotations {
		names = append(names, strings.TrimPrefix(a.name, v1alpha1.GroupName+"/"))
	}
	if closest = suggest.Closest(name, names); closest != "" {
		return v1alpha1.GroupName + "/" + closest, true
	}
	return "", domain == v1alpha1.GroupName
}
