package plan

import (
	"cmp"
	"context"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Mistake is a probable mistake in an object that no status reports, because the object
// has no parent, or because the API server accepts any annotation.
type Mistake struct {
	Object  Owner  `json:"object"`
	Message string `json:"message"`

	// gateways are the Gateways that the mistake concerns, besides those on which the
	// object's status depends.
	gateways []gateway.Owner
}

// findMistakes finds the mistakes in the source's objects and the routes with a missing
// parent.
func (p *Plan) findMistakes(ctx context.Context, source *state.Source, controller gatewayv1.GatewayController) (err error) {
	var mistakes []Mistake
	if p.classes, mistakes, err = listClasses(ctx, source, controller); err != nil {
		return err
	}
	parents := newParents(source, p.classes)
	parents.undecided = p.undecided
	p.Mistakes, p.detached = findObjectMistakes(source, parents)
	p.Mistakes = append(append(p.Mistakes, mistakes...), parents.unsupportedMistakes(source)...)
	return nil
}

// findObjectMistakes returns the mistakes in single objects and the routes with a missing
// parent, which it sorts.
func findObjectMistakes(source *state.Source, parents *parents) ([]Mistake, []DetachedRoute) {
	mistakes, detached := []Mistake{}, []DetachedRoute(nil)
	sets := newListenerHostnames(source.Objects)
	for _, object := range source.Objects {
		owner := Owner{Kind: state.KindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
		problems := parents.problems(object)
		if len(problems) > 0 {
			detached = append(detached, newDetachedRoute(owner, object, problems, sets)...)
		}
		for _, message := range append(problems, annotationProblems(owner.Kind, object)...) {
			mistakes = append(mistakes, Mistake{Object: owner, Message: message})
		}
	}
	slices.SortStableFunc(detached, func(a, b DetachedRoute) int { return compareOwners(a.Route, b.Route) })
	return mistakes, detached
}

// sortMistakes sorts the mistakes by kind, namespace and name.
func (p *Plan) sortMistakes() {
	slices.SortStableFunc(p.Mistakes, func(a, b Mistake) int { return compareOwners(a.Object, b.Object) })
}

func compareOwners(a, b Owner) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// WriteMistakes prints a line for each mistake, with all objects that have it. Each line
// begins with the prefix.
func (p *Plan) WriteMistakes(w io.Writer, prefix string, style Style) {
	out := terminal.NewLines(w, style.Color)
	objects, messages := map[string][]string{}, []string(nil)
	for _, mistake := range p.Mistakes {
		if objects[mistake.Message] == nil {
			messages = append(messages, mistake.Message)
		}
		objects[mistake.Message] = append(objects[mistake.Message], mistake.Object.String())
	}
	for _, message := range messages {
		terminal.Printf(out, "%s%s: %s"+problemMark+"\n", prefix, style.abbreviate(objects[message]), message)
	}
}

// concerns reports whether the mistake concerns the Gateway, its GatewayClass, its Tunnel, an
// object whose status depends on the Gateway, or the namespace of such an object.
func (g *Gateway) concerns(m *Mistake) bool {
	if slices.Contains(m.gateways, state.GatewayKey(g.Namespace, g.Name)) {
		return true
	}
	switch object := m.Object; object.Kind {
	case "Namespace":
		return g.namespaces()[object.Name]
	case "Tunnel":
		return object.Name == tunnel.ObjectName(types.NamespacedName{Namespace: g.Namespace, Name: g.Name})
	case kindGatewayClass:
		return g.class != nil && object.Name == g.class.Name
	default:
		id := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		return g.reported[gateway.Owner{Kind: object.Kind, NamespacedName: id}]
	}
}

// namespaces returns the namespaces of the objects whose statuses depend on the Gateway.
func (g *Gateway) namespaces() map[string]bool {
	all := map[string]bool{}
	for owner := range g.reported {
		all[owner.Namespace] = true
	}
	return all
}
