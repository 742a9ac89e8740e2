package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// answers has what the converted objects answer.
type answers struct {
	matcher       *Matcher
	configuration *provider.Configuration
	plan          *plan.Plan
	plane         v1alpha1.DataPlane
	problems      []plan.Problem
}

// newAnswers decides as the controller does about the objects, with Services for their
// backends.
func newAnswers(ctx context.Context, r *Result, o Options) (*answers, error) {
	objects := services(r)
	for _, d := range r.Documents {
		objects = append(objects, d.Object)
	}
	var text strings.Builder
	for _, object := range objects {
		encoded, err := (&Document{Object: object}).encode()
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n" + string(encoded))
	}
	source, err := state.FromFiles([]string{"-"}, manifest.Options{Stdin: strings.NewReader(text.String())}, gatewayv1.GatewayController(o.ControllerName), o.className())
	if err != nil {
		return nil, fmt.Errorf("read the converted objects: %w", err)
	}
	p, err := plan.Build(ctx, source, plan.Options{Options: gateway.Options{
		ControllerName: gatewayv1.GatewayController(o.ControllerName), ControllerNamespace: o.ControllerNamespace, ClusterDomain: o.ClusterDomain,
	}}, time.Unix(0, 0))
	if err != nil {
		return nil, fmt.Errorf("decide about the converted objects: %w", err)
	}
	return answersOf(p)
}

// className returns the Gateway's class, unless it has its own.
func (o Options) className() string {
	if o.GatewayClass != "" {
		return o.GatewayClass
	}
	return o.DefaultClass
}

// answersOf returns what the plan's only Gateway answers.
func answersOf(p *plan.Plan) (*answers, error) {
	if len(p.Gateways) != 1 || p.Gateways[0].Config == nil {
		return nil, fmt.Errorf("the controller does not accept the converted Gateway: %v", p.Problems())
	}
	a := &answers{plan: p, configuration: p.Gateways[0].Config, plane: p.Gateways[0].DataPlane, problems: slices.DeleteFunc(p.Problems(), isMissingAuthority)}
	rules := make([]Rule, len(a.configuration.Ingress))
	for i, r := range a.configuration.Ingress {
		rules[i] = Rule{Index: i, Hostname: r.Hostname, Path: r.Path, Service: r.Service}
	}
	var err error
	a.matcher, err = NewMatcher(rules)
	return a, err
}

// isMissingAuthority reports whether a problem is about the ConfigMap for a BackendTLSPolicy,
// which the notes ask for.
func isMissingAuthority(p plan.Problem) bool {
	reasons := []conditions.Reason{conditions.ReasonInvalidCACertificateRef, conditions.ReasonNoValidCACertificate, conditions.ReasonInvalidBackendTLSPolicy}
	return slices.ContainsFunc(reasons, func(r conditions.Reason) bool { return r.String() == p.Reason })
}

// Verify makes the controller's decisions about the objects, and adds a note for each object
// that the controller does not accept, for example because of a limit. It assumes that the
// Services exist.
func (r *Result) Verify(ctx context.Context, o Options) error {
	a, err := newAnswers(ctx, r, o)
	if err != nil {
		return err
	}
	for _, p := range a.problems {
		n := Note{Kind: NoteDifferent, Key: p.Owner.String(), Text: p.Condition + " will have the reason " + p.Reason + ": " + p.Message}
		if a.exceedsLimit(p) {
			n.Advice = "raise spec.limits in the TunnelConfiguration of the GatewayClass, see the page about limits"
		}
		r.Notes = append(r.Notes, n)
	}
	return nil
}

// exceedsLimit reports whether the object, or one of its listeners, exceeds a limit.
func (a *answers) exceedsLimit(p plan.Problem) bool {
	exceeded := conditions.ReasonLimitExceeded.String()
	return p.Reason == exceeded || slices.ContainsFunc(a.plan.Gateways[0].Listeners, func(l plan.Listener) bool {
		return l.Owner == p.Owner && l.Reason == exceeded
	})
}

// answer describes the answer to a request, like [Configuration.answer].
func (a *answers) answer(r Request) string {
	if a.plane == v1alpha1.DataPlaneEnvoy {
		return a.explained(r)
	}
	rule := a.configuration.Ingress[a.matcher.Match(r.Host, r.Path)]
	if strings.HasPrefix(rule.Service, "http_status:") {
		return rule.Service
	}
	u, err := url.Parse(rule.Service)
	if err != nil {
		return rule.Service
	}
	settings := decoded(a.configuration.OriginRequest)
	maps.Copy(settings, decoded(rule.OriginRequest))
	tls := u.Scheme == "https"
	return describeBackend(tls, u.Hostname(), u.Port()) + describeSettings(tls, u.Hostname(), settings) + describeAccess(rule.OriginRequest.Access)
}

// explained describes Envoy's answer, without settings.
func (a *answers) explained(r Request) string {
	explanation := a.plan.Explain(routing.Request{Host: r.Host, Path: r.Path, EscapedPath: escapePath(r.Path)})
	if len(explanation.Traces) == 0 || explanation.Traces[0].Answer == nil {
		return "http_status:404"
	}
	answer := explanation.Traces[0].Answer
	if len(answer.Backends) == 0 {
		return fmt.Sprintf("http_status:%d", answer.Status)
	}
	return answer.Backends[0].Backend + describeAccess(answer.Access)
}

// decoded returns the settings that cloudflared gets.
func decoded(o provider.OriginRequest) Settings {
	o.Access = nil
	text, _ := json.Marshal(o) // strings, integers and booleans always marshal
	fields, settings := map[string]any{}, Settings{}
	_ = json.Unmarshal(text, &fields)
	for name, value := range fields {
		if number, ok := value.(float64); ok {
			value = int64(number)
		}
		settings[name] = Setting{Value: value}
	}
	return settings
}

// services returns the Services that the routes refer to, with the appProtocol that the
// notes ask for.
func services(r *Result) []client.Object {
	byName := map[string]*corev1.Service{}
	for _, b := range r.backends {
		key := b.namespace + "/" + b.name
		if byName[key] == nil {
			byName[key] = &corev1.Service{}
			byName[key].Name, byName[key].Namespace = b.name, b.namespace
		}
		port := corev1.ServicePort{Name: fmt.Sprintf("p%d", b.port), Port: b.port}
		if b.tls {
			port.AppProtocol = ptr.To("https")
		}
		if !slices.ContainsFunc(byName[key].Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == b.port }) {
			byName[key].Spec.Ports = append(byName[key].Spec.Ports, port)
		}
	}
	var objects []client.Object
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		objects = append(objects, byName[key])
	}
	return objects
}
