package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// undecided finds the Gateways about which no decision is possible, because the user may
// not read them or their settings.
type undecided struct {
	source     *state.Source
	controller gatewayv1.GatewayController
	gateways   map[types.NamespacedName]*gatewayv1.Gateway
	sets       map[types.NamespacedName]*gatewayv1.ListenerSet
	classes    map[string]*gatewayv1.GatewayClass
}

func newUndecided(source *state.Source, controller gatewayv1.GatewayController) *undecided {
	u := &undecided{
		source: source, controller: controller, gateways: map[types.NamespacedName]*gatewayv1.Gateway{},
		sets: map[types.NamespacedName]*gatewayv1.ListenerSet{}, classes: map[string]*gatewayv1.GatewayClass{},
	}
	if len(source.Gaps) == 0 {
		return u
	}
	for _, object := range source.Objects {
		switch o := object.(type) {
		case *gatewayv1.Gateway:
			u.gateways[client.ObjectKeyFromObject(o)] = o
		case *gatewayv1.ListenerSet:
			u.sets[client.ObjectKeyFromObject(o)] = o
		case *gatewayv1.GatewayClass:
			u.classes[o.Name] = o
		}
	}
	return u
}

// reason returns why no decision about the Gateway, or about the Gateway of the
// ListenerSet, is possible, or "".
func (u *undecided) reason(owner gateway.Owner) string {
	gap := u.gap(owner)
	if gap == nil {
		return ""
	}
	object := Owner{Kind: gap.Kind, Namespace: gap.Namespace, Name: gap.Name}
	return fmt.Sprintf("%s cannot get %s", u.source.User, object)
}

// gap returns the read that a decision needs and that the user has no permission for, or
// nil.
func (u *undecided) gap(owner gateway.Owner) *state.Gap {
	if u == nil || len(u.source.Gaps) == 0 {
		return nil
	}
	if owner.Kind == gateway.KindGateway {
		return u.gapOfGateway(owner.NamespacedName)
	}
	set := u.sets[owner.NamespacedName]
	if set == nil {
		return u.source.Unread(gateway.KindListenerSet, owner.NamespacedName)
	}
	parent, ok := state.ParentGateway(set)
	if !ok {
		return nil
	}
	return u.gapOfGateway(parent.NamespacedName)
}

func (u *undecided) gapOfGateway(name types.NamespacedName) *state.Gap {
	g := u.gateways[name]
	if g == nil {
		return u.source.Unread(gateway.KindGateway, name)
	}
	class := u.classes[string(g.Spec.GatewayClassName)]
	if class == nil {
		return u.source.Unread(kindGatewayClass, types.NamespacedName{Name: string(g.Spec.GatewayClassName)})
	}
	if class.Spec.ControllerName != u.controller {
		return nil
	}
	if gap := u.gapOfClass(class); gap != nil {
		return gap
	}
	if parameters, ok := settings.GatewayParameters(g); ok {
		return u.source.Unread("TunnelConfiguration", parameters)
	}
	return nil
}

// gapOfClass returns the Gap for the settings of the class, or nil.
func (u *undecided) gapOfClass(class *gatewayv1.GatewayClass) *state.Gap {
	if parameters, ok := settings.ClassParameters(class); ok {
		return u.source.Unread("TunnelConfiguration", parameters)
	}
	return nil
}

// gatewayOf returns the Gateway itself, or the ListenerSet's, and false if it is not known.
func (u *undecided) gatewayOf(owner gateway.Owner) (types.NamespacedName, bool) {
	if owner.Kind == gateway.KindGateway {
		return owner.NamespacedName, true
	}
	set := u.sets[owner.NamespacedName]
	if set == nil {
		return types.NamespacedName{}, false
	}
	parent, ok := state.ParentGateway(set)
	return parent.NamespacedName, ok
}
