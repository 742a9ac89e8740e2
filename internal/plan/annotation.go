package plan

import (
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

// annotation is an annotation of this project.
type annotation struct {
	name string
	// kind is the only kind on which the annotation has an effect.
	kind string
	// check describes the problem of a value, as a predicate whose subject is the
	// annotation. It returns "" for a permitted value.
	check func(value string) string
}

// annotations are all annotations of this project.
var annotations = []annotation{
	{v1alpha1.PausedAnnotation, gateway.KindGateway, trueOrFalse},
	{v1alpha1.RotateTokenAnnotation, "Tunnel", notEmpty},
	{v1alpha1.ReconcileAnnotation, "Tunnel", notEmpty},
	{hostnames.Annotation, "Namespace", validHostnames},
	{v1alpha1.BundleVersionAnnotation, "CustomResourceDefinition", notEmpty},
	{connector.TokenVersionAnnotation, "Pod", notEmpty},
}

// noEffect begins the description of a value that has no effect. The API server accepts
// very long values.
const noEffect = "has no effect with the value %.80q"

func trueOrFalse(value string) string {
	values := []string{"true", "false"}
	if slices.Contains(values, value) {
		return ""
	}
	if closest := suggest.Closest(value, values); closest != "" {
		return suggest.DidYouMean(fmt.Sprintf(noEffect, value), closest)
	}
	return fmt.Sprintf(noEffect+"; the value must be true or false", value)
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

// annotationProblems describes the annotations of an object that have no effect, and the
// labels that should be annotations.
func annotationProblems(kind string, object client.Object) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(object.GetAnnotations())) {
		if problem := annotationProblem(kind, name, object.GetAnnotations()[name]); problem != "" {
			problems = append(problems, fmt.Sprintf("annotation %s %s", name, problem))
		}
	}
	for _, a := range annotations {
		if _, labeled := object.GetLabels()[a.name]; labeled {
			problems = append(problems, fmt.Sprintf("label %s has no effect; it is an annotation", a.name))
		}
	}
	return problems
}

// annotationProblem describes the problem of one annotation, as a predicate whose subject
// is the annotation. It returns "" for an annotation of another project.
func annotationProblem(kind, name, value string) string {
	i := slices.IndexFunc(annotations, func(a annotation) bool { return a.name == name })
	switch {
	case i < 0:
		return unknownAnnotation(name)
	case annotations[i].kind != kind:
		return fmt.Sprintf("has no effect on kind %s; it belongs on kind %s", kind, annotations[i].kind)
	}
	return annotations[i].check(value)
}

// unknownAnnotation describes an annotation whose domain is that of this project, or that
// resembles an annotation of this project. It returns "" for any other annotation.
func unknownAnnotation(name string) string {
	domain, name, found := strings.Cut(name, "/")
	if !found || suggest.Closest(domain, []string{v1alpha1.GroupName}) == "" {
		return ""
	}
	var names []string
	for _, a := range annotations {
		names = append(names, strings.TrimPrefix(a.name, v1alpha1.GroupName+"/"))
	}
	closest := suggest.Closest(name, names)
	if closest == "" && domain != v1alpha1.GroupName {
		return ""
	}
	if closest != "" {
		closest = v1alpha1.GroupName + "/" + closest
	}
	return suggest.DidYouMean("does not exist", closest)
}
