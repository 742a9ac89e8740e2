package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// unreadKind says what is not known without some objects of a kind.
type unreadKind struct {
	verb   string
	kind   kinds.Kind
	format string
}

// unreadPlatform are the kinds that can change the decisions about all requests.
var unreadPlatform = []unreadKind{
	{"get", kinds.Tunnel, "which tunnel and data plane are in effect (Tunnel %s)"},
	{"get", kinds.Namespace, "the labels and annotations of Namespace %s"},
}

// unreadBackends are the kinds that can change what happens to requests for backends.
var unreadBackends = []unreadKind{
	{"get", kinds.Service, "whether the backends exist and have the ports (Service %s)"},
	{"list", kinds.Service, "the Services in namespace %s"},
	{"list", kinds.ServiceImport, "the ServiceImports in namespace %s"},
	{"list", kinds.ReferenceGrant, "whether ReferenceGrants permit the references to namespace %s"},
	{"list", kinds.BackendTLSPolicy, "whether a BackendTLSPolicy applies to the backends in namespace %s"},
	{"list", kinds.EndpointSlice, "the endpoints of the backends in namespace %s"},
	{"get", kinds.ConfigMap, "whether the certificate authorities are usable (ConfigMap %s)"},
}

// unknown returns what a plan from the source does not know, because the user may not read
// it. Each text continues "It is not known". decided reports whether a decision was made,
// and concerns whether it has backends in the namespace.
func (u *undecided) unknown(decided bool, concerns func(namespace string) bool) []string {
	all := append(u.unreadNamespaces(), u.undecidedGateways()...)
	if !decided {
		return all
	}
	add := func(about []unreadKind, concerns func(string) bool) {
		for _, kind := range about {
			if objects := kind.objects(u.source, concerns); len(objects) > 0 {
				all = append(all, fmt.Sprintf(kind.format, Style{}.abbreviate(objects)))
			}
		}
	}
	add(unreadPlatform, everywhere)
	add(unreadBackends, concerns)
	return all
}

func everywhere(string) bool { return true }

// objects returns the objects or namespaces that were not read.
func (k unreadKind) objects(source *state.Source, concerns func(namespace string) bool) []string {
	var names []string
	for _, gap := range source.Gaps {
		switch {
		case gap.Verb != k.verb || gap.Kind != k.kind.GVK().Kind || !concerns(gap.Namespace):
		case gap.Name == "":
			names = append(names, gap.Namespace)
		default:
			names = append(names, Owner{Namespace: gap.Namespace, Name: gap.Name}.name())
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// name returns the namespace, if there is one, and the name.
func (o Owner) name() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// competitors are the kinds whose objects can claim a hostname or answer a request.
var competitors = []kinds.Kind{kinds.Gateway, kinds.ListenerSet, kinds.HTTPRoute, kinds.GRPCRoute}

// unreadNamespaces says that objects in other namespaces may compete with those in the plan.
func (u *undecided) unreadNamespaces() []string {
	byNamespace := map[string][]string{}
	for _, kind := range competitors {
		for _, gap := range u.source.Gaps {
			if gap.Verb == "list" && gap.Kind == kind.GVK().Kind {
				byNamespace[gap.Namespace] = append(byNamespace[gap.Namespace], kind.Plural)
			}
		}
	}
	var all []string
	if plurals := byNamespace[""]; len(plurals) > 0 {
		where := "in any namespace"
		if read := u.source.Namespaces; len(read) > 0 {
			where = "outside " + plural("namespace", len(read)) + " " + Style{}.abbreviate(read)
		}
		all = append(all, fmt.Sprintf("whether %s %s claim the same hostnames or answer the same requests", joinAnd(plurals), where))
	}
	for _, namespace := range u.source.Namespaces {
		if plurals := byNamespace[namespace]; len(plurals) > 0 {
			all = append(all, fmt.Sprintf("which %s exist in namespace %s", joinAnd(plurals), namespace))
		}
	}
	return all
}

// joinAnd joins the words of an enumeration.
func joinAnd(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// undecidedGateways names the Gateways about which no decision is possible, and why.
func (u *undecided) undecidedGateways() []string {
	reasons := map[types.NamespacedName]string{}
	add := func(owner gateway.Owner) {
		name, ok := u.gatewayOf(owner)
		if reason := u.reason(owner); ok && reason != "" {
			reasons[name] = reason
		}
	}
	for name := range u.gateways {
		add(state.GatewayKey(name.Namespace, name.Name))
	}
	for name := range u.sets {
		add(gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: name})
	}
	for _, gap := range u.source.Gaps {
		if gap.Verb == "get" && gap.Kind == gateway.KindGateway {
			add(state.GatewayKey(gap.Namespace, gap.Name))
		}
	}
	var all []string
	for name, reason := range reasons {
		all = append(all, fmt.Sprintf("what Gateway %s does, because %s", name, reason))
	}
	slices.Sort(all)
	return all
}

// unknownLines say what is not known.
func unknownLines(unknown []string) []Line {
	var lines []Line
	for _, text := range unknown {
		lines = append(lines, line("Not known: %s", text))
	}
	return lines
}
