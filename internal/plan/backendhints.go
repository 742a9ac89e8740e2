package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// services are a source's Services. They suggest what a backendRef to a missing Service or
// port probably means. Conditions contain no such suggestions, because they could name
// objects that a route's owner may not see.
type services struct {
	objects map[types.NamespacedName]*corev1.Service
	// names are the Services' names by namespace, and namespaces their namespaces by name.
	names, namespaces map[string][]string
	// hints are the suggestions by backendRef. mu guards them, because several requests can
	// be explained at a time.
	mu    sync.Mutex
	hints map[servicePort]string
}

// servicePort is what a backendRef names.
type servicePort struct {
	types.NamespacedName
	port int32
}

func newServices(objects []client.Object) *services {
	s := &services{
		objects: map[types.NamespacedName]*corev1.Service{}, names: map[string][]string{}, namespaces: map[string][]string{}, hints: map[servicePort]string{},
	}
	for _, object := range objects {
		if service, ok := object.(*corev1.Service); ok {
			s.objects[client.ObjectKeyFromObject(service)] = service
			s.names[service.Namespace] = append(s.names[service.Namespace], service.Name)
			s.namespaces[service.Name] = append(s.namespaces[service.Name], service.Namespace)
		}
	}
	for _, lists := range []map[string][]string{s.names, s.namespaces} {
		for _, list := range lists {
			slices.Sort(list)
		}
	}
	return s
}

// ofRoute returns the suggestions for a route's unresolved backendRefs, each once.
func (s *services) ofRoute(route *gateway.Route) []string {
	if p := route.Unresolved; p == nil || p.Reason != conditions.ReasonBackendNotFound {
		return nil
	}
	var all []string
	for i := range route.Rules {
		for _, hint := range s.ofRule(route, i) {
			if !slices.Contains(all, hint) {
				all = append(all, hint)
			}
		}
	}
	return all
}

// ofEntry returns the suggestions for an entry's rule if it fails because of a backend.
func (s *services) ofEntry(e *routing.Entry, result *gateway.Result) []string {
	if e == nil || e.Action.Problem == nil || e.Action.Problem.Reason != conditions.ReasonBackendNotFound.String() {
		return nil
	}
	source := e.Source.Route
	i := slices.IndexFunc(result.Routes, func(r *gateway.Route) bool {
		return r.Kind == source.Kind && r.Namespace == source.Namespace && r.Name == source.Name
	})
	if i < 0 {
		return nil
	}
	return s.ofRule(result.Routes[i], e.Source.Rule)
}

// ofRule returns the suggestions for the backendRefs in one rule.
func (s *services) ofRule(route *gateway.Route, rule int) []string {
	if rule >= len(route.Rules) {
		return nil
	}
	var all []string
	for _, ref := range route.Rules[rule].BackendRefs {
		if ptr.Deref(ref.Group, "") != "" || ptr.Deref(ref.Kind, "Service") != "Service" {
			continue
		}
		namespace := string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace)))
		if hint := s.hint(servicePort{types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}, ptr.Deref(ref.Port, 0)}); hint != "" {
			all = append(all, hint)
		}
	}
	return all
}

// hint returns the suggestion for a Service or port that does not exist, or "".
func (s *services) hint(ref servicePort) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	hint, known := s.hints[ref]
	if !known && len(s.hints) < maxSuggestions {
		hint = s.newHint(ref)
		s.hints[ref] = hint
	}
	return hint
}

func (s *services) newHint(ref servicePort) string {
	if service := s.objects[ref.NamespacedName]; service != nil {
		return portHint(service, ref.port)
	}
	meant := ref.NamespacedName
	if closest := suggest.Closest(ref.Name, s.names[ref.Namespace]); closest != "" {
		meant.Name = closest
	} else if others := s.namespaces[ref.Name]; len(others) > 0 {
		meant.Namespace = cmp.Or(suggest.Closest(ref.Namespace, others), suggest.OnlyOne(others))
	}
	if meant == ref.NamespacedName || meant.Namespace == "" {
		return ""
	}
	return fmt.Sprintf("Did you mean Service %s instead of %s?", meant, ref.NamespacedName)
}

// portHint returns the suggestion for a port that the Service does not have, or "".
func portHint(service *corev1.Service, number int32) string {
	var ports []string
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		switch {
		case port.Protocol != corev1.ProtocolTCP:
		case port.Port == number:
			return ""
		case port.TargetPort == intstr.FromInt32(number):
			return fmt.Sprintf("Port %d of Service %s/%s leads to targetPort %d; did you mean port %d?", port.Port, service.Namespace, service.Name, number, port.Port)
		default:
			ports = append(ports, strconv.Itoa(int(port.Port)))
		}
	}
	if len(ports) == 0 {
		return ""
	}
	return fmt.Sprintf("Ports of Service %s/%s: %s.", service.Namespace, service.Name, Style{}.abbreviate(ports))
}

// withHints appends the suggestions to a text.
func withHints(text string, hints []string) string {
	return strings.Join(append([]string{text}, hints...), " ")
}
