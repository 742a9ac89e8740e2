package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// maxPods limits the pods whose container ports are read. The pods of a Service are usually
// alike.
const maxPods = 10

// endpointFindings reports on the endpoints of a Service port. Both data planes send requests
// to ready endpoints, or, if there are none, to the endpoints that still serve while they terminate.
func (i *inspection) endpointFindings(ctx context.Context, service *corev1.Service, port *corev1.ServicePort) findings {
	name := fmt.Sprintf("Service %s/%s port %d", service.Namespace, service.Name, port.Port)
	b := routing.Backend{PortName: port.Name}
	if len(service.Spec.IPFamilies) > 0 {
		b.Family = service.Spec.IPFamilies[0]
	}
	all, unreadable := i.endpoints(ctx, name, client.ObjectKeyFromObject(service), false)
	if unreadable != nil {
		return unreadable
	}
	found := envoy.AddressesOf(b, all)
	f := describeEndpoints(name, found)
	if len(found.Ready)+len(found.Terminating)+len(found.Unready) == 0 {
		f = noEndpoints(name, service, port, all)
	} else if f.haveFailed() {
		f.advise("Find out why the pods are not ready: %s", podsCommand(service))
	}
	return append(f, i.containerPorts(ctx, service, port)...)
}

// endpoints reads the EndpointSlices of a Service or ServiceImport, or reports why it cannot.
func (i *inspection) endpoints(ctx context.Context, title string, name types.NamespacedName, isImport bool) ([]*discoveryv1.EndpointSlice, findings) {
	var f findings
	all, err := state.Endpoints(ctx, i.Source, name, isImport)
	switch {
	case err != nil:
		f.add(Unknown, "%s: the endpoints cannot be read: %v.", title, err)
	case i.Source.Unlisted(kinds.EndpointSlice, name.Namespace):
		f.add(Unknown, "%s: the endpoints are not known, because you cannot list endpointslices.discovery.k8s.io in namespace %s.", title, name.Namespace)
	}
	return all, f
}

// describeEndpoints counts the endpoints by state.
func describeEndpoints(name string, found envoy.EndpointAddresses) findings {
	var f findings
	unready := ""
	if n := len(found.Unready); n > 0 {
		unready = fmt.Sprintf("; %d not ready: %s", n, abbreviate(found.Unready))
	}
	switch ready, terminating := len(found.Ready), len(found.Terminating); {
	case ready > 0:
		f.add(OK, "%s: %s ready%s.", name, count(ready, "endpoint"), unready)
	case terminating > 0:
		f.add(Warning, "%s: no endpoint is ready. Requests go to %s: %s%s.", name, count(terminating, "terminating endpoint"), abbreviate(found.Terminating), unready)
	default:
		f.add(Failed, "%s: no endpoint is ready%s.", name, unready)
	}
	return f
}

// noEndpoints explains why a Service port has no endpoints.
func noEndpoints(name string, service *corev1.Service, port *corev1.ServicePort, all []*discoveryv1.EndpointSlice) findings {
	var f findings
	hasAddresses := slices.ContainsFunc(all, func(s *discoveryv1.EndpointSlice) bool { return len(s.Endpoints) > 0 })
	switch {
	case hasAddresses && port.TargetPort.StrVal != "":
		f.add(Failed, "%s has no endpoints: no container in its pods has a port named %q.", name, port.TargetPort.StrVal)
		f.advise("Name the container's port, or set targetPort to its number.")
	case hasAddresses:
		f.add(Failed, "%s has no endpoints, although other ports of the Service have some.", name)
		f.advise("Compare the names of the ports in the Service and in its EndpointSlices.")
	case len(service.Spec.Selector) == 0:
		f.add(Failed, "%s has no endpoints, and the Service has no selector.", name)
		f.advise("Set spec.selector, or create EndpointSlices for the Service.")
	default:
		f.add(Failed, "%s has no endpoints: no running pod has the labels %s.", name, selectorOf(service))
		f.advise("Compare the labels of the pods with the selector: %s", podsCommand(service))
	}
	return f
}

// podsCommand returns the command that lists a Service's pods.
func podsCommand(service *corev1.Service) string {
	if len(service.Spec.Selector) == 0 {
		return fmt.Sprintf("kubectl get endpointslices -n %s -l %s=%s", service.Namespace, discoveryv1.LabelServiceName, service.Name)
	}
	return fmt.Sprintf("kubectl get pods -n %s -l %s", service.Namespace, selectorOf(service))
}

// containerPorts warns if the pods' containers name their ports, and the target port is none
// of them. Containers need not name their ports, and users need not be permitted to read pods.
func (i *inspection) containerPorts(ctx context.Context, service *corev1.Service, port *corev1.ServicePort) findings {
	target := port.TargetPort.IntVal
	if port.TargetPort.StrVal != "" || len(service.Spec.Selector) == 0 || i.Pods == nil {
		return nil
	}
	if target == 0 {
		target = port.Port
	}
	var pods corev1.PodList
	if err := i.Pods.List(ctx, &pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector), client.Limit(maxPods)); err != nil {
		return nil
	}
	var named []string
	for n := range pods.Items {
		for _, c := range pods.Items[n].Spec.Containers {
			for _, p := range c.Ports {
				if p.ContainerPort == target {
					return nil
				}
				if text := fmt.Sprint(p.ContainerPort); !slices.Contains(named, text) {
					named = append(named, text)
				}
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	var f findings
	f.add(Warning, "Service %s/%s port %d leads to targetPort %d, but the pods' containers have other ports: %s.", service.Namespace, service.Name, port.Port, target, strings.Join(named, ", "))
	f.advise("If nothing listens on port %d in the pods, requests get 502 or 503: correct targetPort.", target)
	return f
}

// importFindings reports on the endpoints of a ServiceImport.
func (i *inspection) importFindings(ctx context.Context, r *plan.Receiver, name types.NamespacedName) findings {
	if r.Entry.Action.Forward == nil {
		return nil // the rule's failure says why
	}
	var f findings
	for _, b := range r.Entry.Action.Forward.Backends {
		title := fmt.Sprintf("ServiceImport %s port %d", name, b.Backend.ServicePort)
		switch {
		case !b.Backend.Import || b.Backend.Service != name || b.Status != 0:
		case b.Backend.IPs != "":
			f.add(OK, "%s has the addresses %s.", title, strings.ReplaceAll(b.Backend.IPs, ",", ", "))
		default:
			all, unreadable := i.endpoints(ctx, title, name, true)
			if unreadable != nil {
				return unreadable
			}
			f = append(f, describeEndpoints(title, envoy.AddressesOf(b.Backend, all))...)
		}
	}
	return f
}

// count returns the number and the noun in its form for it.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
