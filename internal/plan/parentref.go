package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// routeParents are the kinds to which routes attach.
var routeParents = []string{gateway.KindGateway, gateway.KindListenerSet}

// maxSuggestions is for how many missing parents plan searches a suggestion: the search
// compares all existing parents.
const maxSuggestions = 100

// parents are a source's Gateways and ListenerSets, managed by this controller or not.
type parents struct {
	exists map[gateway.Owner]bool
	// managed are this controller's Gateways.
	managed map[gateway.Owner]bool
	// gatewayOf maps each ListenerSet to its Gateway. A ListenerSet with a mistake in
	// its parentRef has the empty Gateway, and a ListenerSet whose parent belongs to
	// another implementation has none.
	gatewayOf map[gateway.Owner]gateway.Owner
	// experimental maps each XListenerSet to its Gateway.
	experimental map[types.NamespacedName]gateway.Owner
	// all are the Gateways and ListenerSets, sorted.
	all []gateway.Owner
	// missing describes the parents that do not exist, by parent.
	missing map[gateway.Owner]string
	// live reports whether a cluster was read. Otherwise, a cluster may contain the
	// missing parents.
	live bool
	// undecided finds the parents that the user may not read.
	undecided *undecided
}

// newParents returns the parents in the source. classes are this controller's
// GatewayClasses.
func newParents(source *state.Source, classes []string) *parents {
	p := &parents{
		exists: map[gateway.Owner]bool{}, managed: map[gateway.Owner]bool{}, gatewayOf: map[gateway.Owner]gateway.Owner{},
		experimental: map[types.NamespacedName]gateway.Owner{}, missing: map[gateway.Owner]string{}, live: source.Live,
	}
	for _, object := range source.Objects {
		switch o := object.(type) {
		case *gatewayv1.Gateway:
			key := state.GatewayKey(o.Namespace, o.Name)
			p.add(key)
			p.managed[key] = slices.Contains(classes, string(o.Spec.GatewayClassName))
		case *gatewayv1.ListenerSet:
			set := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(o)}
			p.add(set)
			if parent, ok := state.ParentGateway(o); ok {
				p.gatewayOf[set] = parent
			} else if kindProblem("", parentOfSet(o), gateway.KindGateway) != "" {
				p.gatewayOf[set] = gateway.Owner{}
			}
		}
	}
	for i := range source.Unsupported {
		u := &source.Unsupported[i]
		if u.Kind == xListenerSet && len(u.Parents) == 1 {
			p.experimental[types.NamespacedName{Namespace: u.Namespace, Name: u.Name}], _ = gateway.OwnerOf(u.Parents[0], u.Namespace)
		}
	}
	slices.SortFunc(p.all, func(a, b gateway.Owner) int { return compareOwners(newOwner(a), newOwner(b)) })
	return p
}

func (p *parents) add(owner gateway.Owner) {
	p.exists[owner] = true
	p.all = append(p.all, owner)
}

// problems describes the parentRefs on a ListenerSet or a route that select no existing
// object.
func (p *parents) problems(object client.Object) []string {
	if set, ok := object.(*gatewayv1.ListenerSet); ok {
		if problem := p.refProblem("spec.parentRef", set.Namespace, parentOfSet(set), gateway.KindGateway); problem != "" {
			return []string{problem}
		}
		return nil
	}
	spec, _, ok := gateway.CommonRoute(object)
	if !ok {
		return nil
	}
	if len(spec.ParentRefs) == 0 {
		return []string{"spec.parentRefs is empty, so no Gateway serves the route. Add a parentRef to a Gateway or ListenerSet."}
	}
	var problems []string
	for i, ref := range spec.ParentRefs {
		problem := p.refProblem(fmt.Sprintf("spec.parentRefs[%d]", i), object.GetNamespace(), ref, routeParents...)
		// Several parentRefs can name sections of one missing parent.
		if problem != "" && !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	return problems
}

// parentOfSet returns a ListenerSet's parentRef in the form that routes use.
func parentOfSet(set *gatewayv1.ListenerSet) gatewayv1.ParentReference {
	ref := set.Spec.ParentRef
	return gatewayv1.ParentReference{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// refProblem describes the problem with a parentRef in the object's field, or returns
// "". kinds are the kinds that the parent can have.
func (p *parents) refProblem(field, namespace string, ref gatewayv1.ParentReference, kinds ...string) string {
	problem := cmp.Or(kindProblem(field, ref, kinds...), p.experimentalParentProblem(field, namespace, ref))
	if owner, ok := gateway.OwnerOf(ref, namespace); ok && problem == "" {
		problem = p.existenceProblem(owner)
	}
	return problem
}

// kindProblem describes the mistake in a parentRef's group or kind, or returns "".
// Parents for other implementations, such as a mesh Service, are not mistakes.
func kindProblem(field string, ref gatewayv1.ParentReference, kinds ...string) string {
	group, kind := string(ptr.Deref(ref.Group, gatewayv1.GroupName)), string(ptr.Deref(ref.Kind, gateway.KindGateway))
	switch {
	case group != gatewayv1.GroupName && resemblesGroup(group, kind):
		return suggest.DidYouMean(fmt.Sprintf("%s.group %q has no kind %s", field, group, kind), gatewayv1.GroupName)
	case group != gatewayv1.GroupName, slices.Contains(kinds, kind):
		return ""
	}
	problem := fmt.Sprintf("%s.kind must be %s, got %s", field, strings.Join(kinds, " or "), kind)
	if kind == "Service" {
		return problem + `; a parentRef to a Service needs group: ""`
	}
	return suggest.DidYouMean(problem, suggest.Closest(kind, kinds))
}

// resemblesGroup reports whether the group was probably meant to be the Gateway API's:
// it is similar, or it is another Kubernetes group, which has no such kind.
func resemblesGroup(group, kind string) bool {
	switch {
	case group == manifest.ExperimentalGroup: // its kinds begin with X
		return slices.Contains(routeParents, kind)
	case group == "", strings.HasSuffix(group, ".k8s.io"):
		if suggest.Closest(kind, routeParents) != "" {
			return true
		}
	}
	return suggest.Closest(group, []string{gatewayv1.GroupName}) != ""
}

// existenceProblem describes why the parent, or a ListenerSet's Gateway, does not
// exist, or returns "".
func (p *parents) existenceProblem(parent gateway.Owner) string {
	if g, ok := p.gatewayOf[parent]; ok {
		if g == (gateway.Owner{}) {
			return fmt.Sprintf("%s does not refer to a Gateway. Correct its spec.parentRef.", parent)
		}
		parent = g
	}
	if p.exists[parent] || p.undecided.gap(parent) != nil {
		return ""
	}
	if p.missing[parent] == "" {
		p.missing[parent] = p.describeMissing(parent)
	}
	return p.missing[parent]
}

func (p *parents) describeMissing(parent gateway.Owner) string {
	problem, advice := parent.String()+" does not exist", ". Create it, or correct the parentRef."
	if !p.live {
		problem, advice = parent.String()+" is not in the manifests", ". Add --context to combine the manifests with a cluster."
	}
	if len(p.missing) >= maxSuggestions {
		return problem + advice
	}
	if closest := p.closest(parent); closest != "" {
		return suggest.DidYouMean(problem, closest)
	}
	return problem + advice
}

// closest returns the existing parent that the user probably meant, or "": the parent with
// the same name and another kind or namespace, otherwise with a similar name in the same
// namespace.
func (p *parents) closest(missing gateway.Owner) string {
	var namespaces, names, namesOfOtherKind []string
	for _, candidate := range p.all {
		sameKind := candidate.Kind == missing.Kind
		switch {
		case candidate.NamespacedName == missing.NamespacedName:
			return candidate.String()
		case sameKind && candidate.Name == missing.Name:
			namespaces = append(namespaces, candidate.Namespace)
		case candidate.Namespace != missing.Namespace:
		case sameKind:
			names = append(names, candidate.Name)
		default:
			namesOfOtherKind = append(namesOfOtherKind, candidate.Name)
		}
	}
	namespace := suggest.Closest(missing.Namespace, namespaces)
	if len(namespaces) == 1 {
		namespace = namespaces[0]
	}
	if namespace != "" {
		missing.Namespace = namespace
		return missing.String()
	}
	name := suggest.Closest(missing.Name, names)
	if name == "" {
		name = suggest.Closest(missing.Name, namesOfOtherKind)
		missing.Kind = otherKind(missing.Kind)
	}
	if name == "" {
		return ""
	}
	missing.Name = name
	return missing.String()
}

// otherKind returns ListenerSet for Gateway, and Gateway for ListenerSet.
func otherKind(kind string) string {
	return routeParents[1-slices.Index(routeParents, kind)]
}
