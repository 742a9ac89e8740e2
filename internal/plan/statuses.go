package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// unsetTime is when all changed conditions changed, so that the same manifests result
// in the same plan. The default conditions in the CRDs have the same time.
var unsetTime = metav1.NewTime(time.Unix(0, 0).UTC())

// statuses collects the objects' statuses. Reports about several Gateways may
// contribute to one route's status.
type statuses struct {
	options gateway.Options
	objects map[gateway.Owner]client.Object
	// reported are the objects on which the controller reports a status.
	reported map[gateway.Owner]bool
}

const kindGatewayClass = "GatewayClass"

// apiVersionOf returns the API version of a kind that has a status.
func apiVersionOf(kind string) string {
	if kind == gateway.KindAccessPolicy {
		return v1alpha1.GroupVersion.String()
	}
	return gatewayv1.GroupVersion.String()
}

// newStatuses copies the source's objects that have a status, and sets the statuses of
// the GatewayClasses whose settings the user may read.
func newStatuses(ctx context.Context, source *state.Source, o gateway.Options, u *undecided) (*statuses, error) {
	s := &statuses{options: o, objects: map[gateway.Owner]client.Object{}, reported: map[gateway.Owner]bool{}}
	for _, object := range source.Objects {
		kind := kindWithStatus(object)
		if kind == "" {
			continue
		}
		id := gateway.Owner{Kind: kind, NamespacedName: client.ObjectKeyFromObject(object)}
		s.objects[id] = object.DeepCopyObject().(client.Object)
	}
	for id, object := range s.objects {
		if class, ok := object.(*gatewayv1.GatewayClass); ok {
			if err := s.setClassStatus(ctx, source, id, class, u); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// kindWithStatus returns the object's kind, or "" if the controller reports no status on
// objects of its kind.
func kindWithStatus(object client.Object) string {
	switch object.(type) {
	case *gatewayv1.Gateway:
		return gateway.KindGateway
	case *gatewayv1.ListenerSet:
		return gateway.KindListenerSet
	case *gatewayv1.HTTPRoute:
		return gateway.KindHTTPRoute
	case *gatewayv1.GRPCRoute:
		return gateway.KindGRPCRoute
	case *gatewayv1.BackendTLSPolicy:
		return gateway.KindBackendTLSPolicy
	case *v1alpha1.AccessPolicy:
		return gateway.KindAccessPolicy
	case *gatewayv1.GatewayClass:
		return kindGatewayClass
	default:
		return ""
	}
}

// setClassStatus sets the status of one of the controller's GatewayClasses. It assumes
// that the cluster has the Gateway API version with which this program is built.
func (s *statuses) setClassStatus(ctx context.Context, source *state.Source, id gateway.Owner, class *gatewayv1.GatewayClass, u *undecided) error {
	if class.Spec.ControllerName != s.options.ControllerName || u.gapOfClass(class) != nil {
		return nil
	}
	configuration, err := state.ClassConfiguration(ctx, source, class)
	if err != nil {
		return err
	}
	wanted := gateway.BuildClass(&gateway.ClassSnapshot{
		Class:          class,
		Configuration:  configuration,
		BundleVersions: map[string]string{"gatewayclasses." + gatewayv1.GroupName: consts.BundleVersion},

		ExperimentalRoutes: source.ExperimentalRoutes,
	}, s.options)
	class.Status, _ = status.MergeClass(class.Status, wanted, unsetTime)
	s.reported[id] = true
	return nil
}

// addGateway merges the report about a Gateway into the statuses. It returns the
// objects whose statuses it changes.
func (s *statuses) addGateway(key gateway.Owner, report gateway.Report) map[gateway.Owner]bool {
	g := s.objects[key].(*gatewayv1.Gateway)
	g.Status, _ = status.MergeGateway(g.Status, report.Gateway, unsetTime)
	changed := s.addAttached(report)
	changed[key], s.reported[key] = true, true
	return changed
}

// addAttached merges the ListenerSet, route and policy statuses in a report. It returns the
// objects whose statuses it changes.
func (s *statuses) addAttached(report gateway.Report) map[gateway.Owner]bool {
	changed := map[gateway.Owner]bool{}
	for _, wanted := range report.ListenerSets {
		id := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: wanted.NamespacedName}
		set := s.objects[id].(*gatewayv1.ListenerSet)
		set.Status, _ = status.MergeListenerSet(set.Status, wanted.Status, unsetTime)
		changed[id] = true
	}
	for _, wanted := range report.Routes {
		id := gateway.Owner{Kind: wanted.Kind, NamespacedName: wanted.NamespacedName}
		spec, current, _ := gateway.CommonRoute(s.objects[id])
		current.Parents, _ = status.MergeRoute(
			current.Parents, spec.ParentRefs, wanted, report.Owners, s.options.ControllerName, unsetTime)
		changed[id] = true
	}
	for _, wanted := range report.Policies {
		id := gateway.Owner{Kind: gateway.KindBackendTLSPolicy, NamespacedName: wanted.NamespacedName}
		policy := s.objects[id].(*gatewayv1.BackendTLSPolicy)
		ancestors, isChanged := status.MergePolicy(policy.Status.Ancestors, wanted, report.Owners, s.options.ControllerName, unsetTime)
		if policy.Status.Ancestors = ancestors; isChanged || wanted.Ancestor != nil {
			changed[id] = true
		}
	}
	s.addAccessPolicies(report, changed)
	maps.Copy(s.reported, changed)
	return changed
}

// addAccessPolicies merges the statuses of AccessPolicies in a report, and adds the changed
// ones.
func (s *statuses) addAccessPolicies(report gateway.Report, changed map[gateway.Owner]bool) {
	for _, wanted := range report.AccessPolicies {
		id := gateway.Owner{Kind: gateway.KindAccessPolicy, NamespacedName: wanted.NamespacedName}
		policy := s.objects[id].(*v1alpha1.AccessPolicy)
		ancestors, isChanged := status.MergeAccessPolicy(policy.Status.Ancestors, wanted, report.Owners, s.options.ControllerName, unsetTime)
		if policy.Status.Ancestors = ancestors; isChanged || len(wanted.Ancestors) > 0 {
			changed[id] = true
		}
	}
}

// changedRoutes returns the route statuses that a report changes, without changing the
// statuses.
func (s *statuses) changedRoutes(report gateway.Report) map[gateway.Owner]gatewayv1.RouteStatus {
	changed := map[gateway.Owner]gatewayv1.RouteStatus{}
	for _, wanted := range report.Routes {
		id := gateway.Owner{Kind: wanted.Kind, NamespacedName: wanted.NamespacedName}
		spec, current, _ := gateway.CommonRoute(s.objects[id].DeepCopyObject().(client.Object))
		parents, isChanged := status.MergeRoute(
			current.Parents, spec.ParentRefs, wanted, report.Owners, s.options.ControllerName, unsetTime)
		if isChanged {
			changed[id] = gatewayv1.RouteStatus{Parents: parents}
		}
	}
	return changed
}

// routeStatus returns the reported status of the route.
func (s *statuses) routeStatus(id gateway.Owner) gatewayv1.RouteStatus {
	_, route, _ := gateway.CommonRoute(s.objects[id])
	return *route
}

// sorted returns the reported statuses, sorted by kind, namespace and name.
func (s *statuses) sorted() []Status {
	all := make([]Status, 0, len(s.reported))
	for id := range s.reported {
		value, conditions := s.statusOf(s.objects[id])
		all = append(all, Status{
			APIVersion: apiVersionOf(id.Kind), Kind: id.Kind, Namespace: id.Namespace, Name: id.Name,
			Status: value, conditions: conditions,
		})
	}
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// statusOf returns an object's status and the lists of conditions in it that belong to
// the controller.
func (s *statuses) statusOf(object client.Object) (any, [][]metav1.Condition) {
	switch o := object.(type) {
	case *gatewayv1.GatewayClass:
		return o.Status, [][]metav1.Condition{o.Status.Conditions}
	case *gatewayv1.Gateway:
		conditions := [][]metav1.Condition{o.Status.Conditions}
		for _, l := range o.Status.Listeners {
			conditions = append(conditions, l.Conditions)
		}
		return o.Status, conditions
	case *gatewayv1.ListenerSet:
		conditions := [][]metav1.Condition{o.Status.Conditions}
		for _, entry := range o.Status.Listeners {
			conditions = append(conditions, entry.Conditions)
		}
		return o.Status, conditions
	case *gatewayv1.BackendTLSPolicy:
		return o.Status, s.conditionsOf(o.Status)
	case *v1alpha1.AccessPolicy:
		return o.Status, s.conditionsOf(o.Status)
	default:
		_, route, _ := gateway.CommonRoute(object)
		var conditions [][]metav1.Condition
		for _, entry := range route.Parents {
			if entry.ControllerName == s.options.ControllerName {
				conditions = append(conditions, entry.Conditions)
			}
		}
		return route, conditions
	}
}

// conditionsOf returns the lists of conditions of the controller's entries in a policy's
// status.
func (s *statuses) conditionsOf(policy gatewayv1.PolicyStatus) [][]metav1.Condition {
	var conditions [][]metav1.Condition
	for _, entry := range policy.Ancestors {
		if entry.ControllerName == s.options.ControllerName {
			conditions = append(conditions, entry.Conditions)
		}
	}
	return conditions
}
