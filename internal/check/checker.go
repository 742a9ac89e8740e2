package check

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// Checker checks requests against one cluster.
type Checker struct {
	// Source contains the objects in the cluster, with their statuses, and Plan is what the
	// controller decides about them.
	Source *state.Source
	Plan   *plan.Plan
	// Pods reads the pods of backends; nil if they are not read.
	Pods client.Reader
	// ControllerName identifies the controller's entries in the statuses of routes.
	ControllerName gatewayv1.GatewayController
	// ControllerNamespace contains the connectors.
	ControllerNamespace string
	// Zones reads zones with the user's API token; nil without a token.
	Zones Zones
	// Network is how a visitor reaches the host. The zero value is the system's network.
	Network probe.Network
	// Progress is called before each step. The returned function is called after it.
	// Progress can be nil.
	Progress func(name string) (done func())
}

// inspection is the check of one request.
type inspection struct {
	*Checker
	request     routing.Request
	explanation *plan.Explanation
	receivers   []plan.Receiver
	gateways    []inspected // of the receivers
}

// inspected is what the steps in the cluster find about one Gateway.
type inspected struct{ decision, objects, backend findings }

// works reports whether no step has failed.
func (i inspected) works() bool {
	return !i.decision.haveFailed() && !i.objects.haveFailed() && !i.backend.haveFailed()
}

// Run checks the request. A step that finds out nothing does not prevent the others. The
// steps end early when ctx ends.
func (c *Checker) Run(ctx context.Context, r Request) *Report {
	report := &Report{URL: r.URL.String(), Result: OK}
	request := r.routing()
	i := &inspection{Checker: c, request: request, explanation: c.Plan.Explain(request), receivers: c.Plan.Receivers(request)}
	done := c.show("comparing the statuses in the cluster")
	for n := range i.receivers {
		r := &i.receivers[n]
		i.gateways = append(i.gateways, inspected{i.decided(r), i.objectFindings(ctx, r), i.backendFindings(ctx, r)})
	}
	report.Steps = []Step{i.decisionStep(), i.objectsStep(), i.backendStep()}
	done()
	report.Steps = append(report.Steps, c.outside(ctx, r, i.expectation(ctx))...)
	for _, step := range report.Steps {
		report.Result = worst(report.Result, step.Result)
	}
	return report
}

// outside runs the steps outside the cluster.
func (c *Checker) outside(ctx context.Context, r Request, e Expectation) []Step {
	done := c.show("reading DNS")
	ctx = withReservation(ctx)
	zone := findZone(ctx, c.Zones, r.URL.Hostname())
	inDNS, e := dnsStep(ctx, c.Network, zone, r, e)
	done()
	done = c.show("checking the certificate of Cloudflare's edge")
	certificate := certificateStep(ctx, c.Network, zone, r, e)
	done()
	done = c.show("sending a request")
	v := visit(ctx, c.Network, r, e)
	done()
	return []Step{inDNS, certificate, accessStep(e, v), requestStep(r, e, v)}
}

// show shows what the check is doing.
func (c *Checker) show(name string) (done func()) {
	if c.Progress == nil {
		return func() {}
	}
	return c.Progress(name)
}

// routing returns the request as the routing table gets it.
func (r Request) routing() routing.Request {
	request, _ := routing.ParseRequest(r.URL.String()) // ParseTarget accepts no other URL
	request.Method, request.Headers = r.Method, r.Header
	return request
}

// combine combines what a step has found about each Gateway. DNS selects one of the Gateways.
// If a Gateway works, the failures of the others are only warnings, because the requests may
// lead to the one that works.
func (i *inspection) combine(of func(inspected) findings) findings {
	oneWorks := slices.ContainsFunc(i.gateways, inspected.works)
	var all findings
	for _, g := range i.gateways {
		for _, f := range of(g) {
			if f.Result == Failed && oneWorks {
				f.Result = Warning
			}
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// expectation returns what the steps outside the cluster compare with what they find.
func (i *inspection) expectation(ctx context.Context) Expectation {
	e := Expectation{Incomplete: len(i.Source.Gaps) > 0, Unlisted: i.Source.Incomplete(kinds.Gateway, kinds.ListenerSet)}
	for n := range i.receivers {
		r := &i.receivers[n]
		s := ServingGateway{
			Namespace: r.Namespace, Name: r.Name,
			ManagesDNS: r.DNSMode == v1alpha1.DNSManage, ObservesDNS: r.DNSMode != v1alpha1.DNSOff,
			UsesEnvoy: r.DataPlane == v1alpha1.DataPlaneEnvoy, ForwardsProxyStatus: !r.SendsProxyStatus,
		}
		if t := r.Tunnel; t != nil {
			s.AccountID = t.Spec.AccountID
		}
		if a := r.Answer; a != nil {
			s.Protected, s.Status = a.Access != nil, a.Status
		}
		if r.Entry != nil {
			s.GRPC = r.Entry.Source.Route.Kind == gateway.KindGRPCRoute
		}
		i.addStatus(ctx, r, &s)
		i.addAccess(ctx, r, &s)
		e.Gateways = append(e.Gateways, s)
	}
	return e
}

// addStatus adds the tunnel's address in the Gateway's status, and what the statuses say about
// the host's DNS record.
func (i *inspection) addStatus(ctx context.Context, r *plan.Receiver, s *ServingGateway) {
	object, err := i.gateway(ctx, r)
	if err != nil {
		return
	}
	if len(object.Status.Addresses) > 0 {
		s.Address = object.Status.Addresses[0].Value
	}
	c := conditions.TypeDNSReady.Find(object.Status.Conditions)
	switch {
	case r.DNSMode == v1alpha1.DNSOff || c == nil:
	case c.Status == metav1.ConditionTrue:
		s.DNSResult, s.DNSMessage = OK, describe(c)
	case names(c.Message, i.request.Hostname()): // at most ten hostnames
		s.DNSResult, s.DNSMessage = Failed, describe(c)
	default:
		s.DNSResult = Unknown
	}
}

// names reports whether a message about hostnames names this one, and not only a longer one
// that contains it. No other field of a status tells the hostnames apart.
func names(message, hostname string) bool {
	return slices.Contains(strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" ,:;()\"", r) }), hostname)
}

// gateway reads the Gateway with its status in the cluster.
func (i *inspection) gateway(ctx context.Context, r *plan.Receiver) (*gatewayv1.Gateway, error) {
	object := &gatewayv1.Gateway{}
	return object, i.Source.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, object)
}
