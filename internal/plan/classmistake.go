package plan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// listClasses returns the names of the controller's GatewayClasses, sorted. If it has none, it
// returns the mistakes in classes for a controller with a similar name.
func listClasses(ctx context.Context, source *state.Source, controller gatewayv1.GatewayController) (names []string, mistakes []Mistake, err error) {
	var list gatewayv1.GatewayClassList
	if err := source.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list GatewayClasses: %w", err)
	}
	for i := range list.Items {
		class := &list.Items[i]
		switch {
		case class.Spec.ControllerName == controller:
			names = append(names, class.Name)
		case suggest.Closest(string(class.Spec.ControllerName), []string{string(controller)}) != "":
			mistakes = append(mistakes, Mistake{Object: Owner{Kind: "GatewayClass", Name: class.Name}, Message: fmt.Sprintf(
				"spec.controllerName is %s, but plan uses %s. Correct it, or set --controller-name.", class.Spec.ControllerName, controller)})
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		mistakes = nil
	}
	return names, mistakes, nil
}

// addClassMistake adds the mistake of a Gateway whose GatewayClass does not exist, but has a
// name similar to one of the controller's classes. It returns the reason with the suggestion.
func (p *Plan) addClassMistake(g *gatewayv1.Gateway, reason string) string {
	closest := suggest.Closest(string(g.Spec.GatewayClassName), p.classes)
	if closest == "" {
		return reason
	}
	reason = suggest.DidYouMean(reason, closest)
	p.Mistakes = append(p.Mistakes, Mistake{Object: Owner{gateway.KindGateway, g.Namespace, g.Name}, Message: reason})
	return reason
}

// noGatewayMessage returns the message that the controller serves no Gateway, with the
// reason for each Gateway that exists, except those whose mistakes the caller prints.
func (p *Plan) noGatewayMessage(style Style, printed []Mistake) string {
	isPrinted := func(name types.NamespacedName) bool {
		return slices.ContainsFunc(printed, func(m Mistake) bool { return m.Object == Owner{gateway.KindGateway, name.Namespace, name.Name} })
	}
	var reasons []string
	for name, reason := range p.unserved {
		if !isPrinted(name) {
			reasons = append(reasons, fmt.Sprintf("Gateway %s: %s", name, reason))
		}
	}
	message := "No Gateway uses this controller."
	if p.isIncomplete() {
		message = "No Gateway that you can read uses this controller."
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		message += " " + suggest.Sentence(style.abbreviate(reasons))
	}
	if p.missesClass && len(p.classes) > 0 {
		message += fmt.Sprintf(" GatewayClasses of this controller: %s.", style.abbreviate(p.classes))
	}
	return message
}
