package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// backendStep reports on the Services to which the answering rule sends requests: their
// ports and their endpoints.
func (i *inspection) backendStep() Step {
	if !slices.ContainsFunc(i.receivers, func(r plan.Receiver) bool { return r.Entry != nil }) {
		return newStep(StepBackend, findings{{Result: Unknown, Message: "Not checked, because no route is known to answer the request."}})
	}
	return newStep(StepBackend, i.combine(func(g inspected) findings { return g.backend }))
}

// backendFindings reports on the backends of the entry that answers on one Gateway.
func (i *inspection) backendFindings(ctx context.Context, r *plan.Receiver) findings {
	if r.Entry == nil {
		return nil
	}
	if r.Answer.Failure != "" && !lacksBackend(r) {
		return findings{{Result: Unknown, Message: "Not checked, because the rule cannot be served."}}
	}
	route, namespace := &r.Answer.Entry.Route, r.Entry.Source.Route.Namespace
	refs, err := i.backendRefs(ctx, *route, r.Entry.Source.Rule)
	if err != nil {
		return unreadable(route.String(), err)
	}
	var f findings
	for _, ref := range refs {
		name := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
		switch group, kind := ptr.Deref(ref.Group, ""), ptr.Deref(ref.Kind, "Service"); {
		case group == "" && kind == "Service":
			f = append(f, i.serviceFindings(ctx, name, ptr.Deref(ref.Port, 0))...)
		case group == multicluster.GroupName:
			f = append(f, i.importFindings(ctx, r, name)...)
		}
	}
	f = append(f, tlsFindings(r)...)
	switch problem := r.Entry.Action.Problem; {
	case problem != nil && !f.haveFailed():
		f.add(Failed, "%s rule %d has no backend that resolves: %s: %s", route, r.Entry.Source.Rule, problem.Reason, suggest.Sentence(problem.Cause))
	case len(f) == 0:
		f.add(OK, "The rule answers the request itself, without a backend.")
	}
	return f
}

// backendRefs returns the references with a weight in a route's rule.
func (i *inspection) backendRefs(ctx context.Context, name plan.Owner, rule int) ([]gatewayv1.BackendRef, error) {
	o, err := i.route(ctx, name)
	if err != nil {
		return nil, err
	}
	var refs []gatewayv1.BackendRef
	switch route := o.(type) {
	case *gatewayv1.HTTPRoute:
		for _, ref := range route.Spec.Rules[rule].BackendRefs {
			refs = append(refs, ref.BackendRef)
		}
	case *gatewayv1.GRPCRoute:
		for _, ref := range route.Spec.Rules[rule].BackendRefs {
			refs = append(refs, ref.BackendRef)
		}
	}
	return slices.DeleteFunc(refs, func(ref gatewayv1.BackendRef) bool { return ptr.Deref(ref.Weight, 1) == 0 }), nil
}

// tlsFindings names the BackendTLSPolicies by which the data plane connects.
func tlsFindings(r *plan.Receiver) findings {
	var f findings
	if r.Entry.Action.Forward == nil {
		return nil
	}
	for _, b := range r.Entry.Action.Forward.Backends {
		if tls := b.Backend.TLS; tls != nil {
			f.add(OK, "Connections to Service %s use TLS for %s, as BackendTLSPolicy %s requires.", b.Backend.Service, tls.Hostname, tls.Policy)
		}
	}
	return f
}

// serviceFindings reports on a Service and its port.
func (i *inspection) serviceFindings(ctx context.Context, name types.NamespacedName, number gatewayv1.PortNumber) findings {
	var f findings
	if gap := i.Source.Unread("Service", name); gap != nil {
		f.add(Unknown, "Service %s is not checked, because you cannot %s.", name, gap)
		return f
	}
	service := &corev1.Service{}
	switch err := i.Source.Get(ctx, name, service); {
	case apierrors.IsNotFound(err):
		f.add(Failed, "%s", suggest.Sentence(suggest.DidYouMean(fmt.Sprintf("Service %s does not exist", name), suggest.Closest(name.Name, i.services(name.Namespace)))))
		f.advise("Create the Service, or correct the backendRef.")
		return f
	case err != nil:
		return unreadable("Service "+name.String(), err)
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		f.add(Failed, "Service %s has the type ExternalName, which is not supported.", name)
		f.advise("For a host outside the cluster, see docs/guides/outside-hosts.md.")
		return f
	}
	n := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return isTCP(p) && p.Port == number })
	if n < 0 {
		return missingPort(service, number)
	}
	return i.endpointFindings(ctx, service, &service.Spec.Ports[n])
}

// services names the Services in a namespace.
func (i *inspection) services(namespace string) []string {
	var names []string
	for _, o := range i.Source.Objects {
		if service, ok := o.(*corev1.Service); ok && service.Namespace == namespace {
			names = append(names, service.Name)
		}
	}
	return names
}

func isTCP(p corev1.ServicePort) bool { return p.Protocol == corev1.ProtocolTCP || p.Protocol == "" }

// missingPort explains which ports the Service has. Often the backendRef names the port of
// the container.
func missingPort(service *corev1.Service, number gatewayv1.PortNumber) findings {
	var f findings
	problem := fmt.Sprintf("Service %s/%s has no TCP port %d", service.Namespace, service.Name, number)
	var ports []string
	for _, p := range service.Spec.Ports {
		switch {
		case !isTCP(p):
		case p.TargetPort.IntVal == number:
			f.add(Failed, "%s; port %d leads to targetPort %d.", problem, p.Port, number)
			f.advise("Set port %d in the backendRef.", p.Port)
			return f
		default:
			ports = append(ports, fmt.Sprint(p.Port))
		}
	}
	if len(ports) == 0 {
		f.add(Failed, "%s, and no other TCP port.", problem)
		f.advise("Add a TCP port to the Service.")
		return f
	}
	f.add(Failed, "%s; its TCP ports: %s.", problem, strings.Join(ports, ", "))
	f.advise("Set one of these ports in the backendRef.")
	return f
}

// selectorOf returns the Service's selector as kubectl accepts it.
func selectorOf(service *corev1.Service) string { return labels.FormatLabels(service.Spec.Selector) }
