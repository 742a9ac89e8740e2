package state

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// ViewerRole is the ClusterRole that permits everything that a plan reads, except Secrets.
const ViewerRole = "tunnel-gateway-viewer"

// teamRole is the ClusterRole that permits reading single objects of the platform. Together
// with the ViewerRole in its own namespaces, it is what a team needs.
const teamRole = "tunnel-gateway-team-viewer"

// teamKinds are the kinds that the teamRole permits reading.
var teamKinds = []string{"GatewayClass", "Gateway", "TunnelConfiguration", "Tunnel"}

// Gap is a read from the cluster that the user has no permission for. The [Source] does
// not contain the objects, so that they can exist or not.
type Gap struct {
	// Verb is "list" or "get".
	Verb string `json:"verb"`
	// Kind is the kind in the Gateway API's or Kubernetes' spelling, such as "Gateway".
	Kind string `json:"kind"`
	// Resource is the API resource with its group, such as
	// "gateways.gateway.networking.k8s.io".
	Resource string `json:"resource"`
	// Namespace is empty for cluster-scoped objects, and for a list of all namespaces.
	// After such a list, the Source contains the objects in [Source.Namespaces] unless
	// another Gap names the namespace.
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for a list.
	Name string `json:"name,omitempty"`
}

func newGap(verb string, kind kinds.Kind, name types.NamespacedName) Gap {
	return Gap{Verb: verb, Kind: kind.GVK().Kind, Resource: kind.Resource().String(), Namespace: name.Namespace, Name: name.Name}
}

// String describes the request, in the words of `kubectl auth can-i`.
func (g Gap) String() string {
	text := g.Verb + " " + g.Resource
	switch {
	case g.Name != "" && g.Namespace != "":
		return text + " " + types.NamespacedName{Namespace: g.Namespace, Name: g.Name}.String()
	case g.Name != "":
		return text + " " + g.Name
	case g.Namespace != "":
		return text + " in namespace " + g.Namespace
	}
	return text
}

// forbiddenUser matches the user in the API server's Forbidden error.
var forbiddenUser = regexp.MustCompile(`User "[^"]*"`)

// refusedUser returns the user whose request the API server rejected.
func refusedUser(err error) string {
	if user := forbiddenUser.FindString(err.Error()); user != "" {
		return "u" + user[1:]
	}
	return "the user of the kubeconfig"
}

// refusal is the message for a user who may not read enough.
func (r *reading) refusal() string {
	nothing := ""
	if r.PermitGaps && !r.permitted && len(r.namespaces) > 0 {
		nothing = ", and nothing in " + describeNamespaces(r.namespaces)
	}
	return fmt.Sprintf("%s cannot %s%s. %s", r.user, describeGaps(r.gaps), nothing, grantCommand(ViewerRole, r.user, r.ControllerNamespace))
}

// DescribeGaps names what the user may not read, and the command that permits it, in one
// line. It returns "" without Gaps.
func (s *Source) DescribeGaps() string {
	if len(s.Gaps) == 0 {
		return ""
	}
	read := ""
	if len(s.Namespaces) > 0 {
		read = ". Only objects in " + describeNamespaces(s.Namespaces) + " and objects that they refer to were read"
	}
	role := ViewerRole
	if slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.Name != "" && slices.Contains(teamKinds, g.Kind) }) && len(s.Namespaces) > 0 {
		role = teamRole
	}
	return fmt.Sprintf("%s cannot %s%s. %s", s.User, describeGaps(s.Gaps), read, grantCommand(role, s.User, s.controllerNamespace))
}

func describeNamespaces(names []string) string {
	if len(names) == 1 {
		return "namespace " + names[0]
	}
	return "namespaces " + strings.Join(names, ", ")
}

// describeGaps joins the requests. It leaves out the requests for a part of a list that it
// names.
func describeGaps(gaps []Gap) string {
	var all, some, single []string
	for _, g := range gaps {
		resource, _, _ := strings.Cut(g.Resource, ".")
		switch {
		case g.Name != "":
			single = append(single, strings.TrimSpace(g.Kind+" "+strings.TrimPrefix(g.Namespace+"/"+g.Name, "/")))
		case g.Namespace == "":
			all = append(all, resource)
		case !slices.ContainsFunc(gaps, func(o Gap) bool { return o.Verb == "list" && o.Kind == g.Kind && o.Namespace == "" }):
			some = append(some, resource+" in namespace "+g.Namespace)
		}
	}
	var parts []string
	if len(all) > 0 {
		parts = append(parts, "list "+strings.Join(all, ", ")+" in all namespaces")
	}
	if len(some) > 0 {
		parts = append(parts, "list "+strings.Join(some, ", "))
	}
	if len(single) > 0 {
		parts = append(parts, "get "+limited(single))
	}
	return strings.Join(parts, "; ")
}

// limited joins the names, at most five of them.
func limited(names []string) string {
	const limit = 5
	if n := len(names) - limit; n > 0 {
		names = append(slices.Clone(names[:limit]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// serviceAccountUser matches the user name of a ServiceAccount.
var serviceAccountUser = regexp.MustCompile(`^system:serviceaccount:([^:]+):([^:]+)$`)

// grantCommand returns the advice to bind the role to the user. The chart adds the
// namespace to the role's name unless the namespace is the default.
func grantCommand(role, user, controllerNamespace string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(user, `user "`), `"`)
	binding := bindingName(role, name)
	if controllerNamespace != config.DefaultControllerNamespace {
		role += "." + controllerNamespace
	}
	subject := "--user=" + terminal.QuoteForShell(name)
	switch account := serviceAccountUser.FindStringSubmatch(name); {
	case name == user: // the error did not name the user
		subject = "--user=<user>"
	case account != nil:
		subject = fmt.Sprintf("--serviceaccount=%s:%s", account[1], account[2])
	}
	return fmt.Sprintf("To permit it: kubectl create clusterrolebinding %s --clusterrole=%s %s", binding, role, subject)
}

// unusualInNames matches what the name of a binding should not contain.
var unusualInNames = regexp.MustCompile(`[^a-z0-9]+`)

// bindingName returns a name for the binding of the role to the user.
func bindingName(role, user string) string {
	name := strings.Trim(unusualInNames.ReplaceAllString(strings.ToLower(user), "-"), "-")
	return strings.TrimSuffix(role+"-"+name, "-")
}
