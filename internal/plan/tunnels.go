package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

const (
	// uptime is the uptime of the process in all decisions of a plan: longer than
	// any call takes, so that nothing waits for the start, and shorter than the
	// interval at which tokens are read again.
	uptime = time.Hour
	// unknownAccount stands for the account of the controller, which a plan without
	// flags does not know.
	unknownAccount = "unknown"
)

// tunnels are the Tunnels of the controller, and the identity of its
// installation.
type tunnels struct {
	objects   []v1alpha1.Tunnel
	options   tunnel.Options
	namespace string
	account   credentials.Default
	now       time.Time
}

func newTunnels(ctx context.Context, source *state.Source, o Options, now time.Time) (*tunnels, error) {
	t := &tunnels{namespace: o.ControllerNamespace, account: o.Account, now: now, options: tunnel.Options{
		ControllerName: string(o.ControllerName), RetirementDelay: uptime, DriftInterval: uptime,
	}}
	var list v1alpha1.TunnelList
	if err := source.List(ctx, &list, client.InNamespace(o.ControllerNamespace)); err != nil {
		return nil, fmt.Errorf("listing the Tunnels: %w", err)
	}
	t.objects = list.Items
	slices.SortFunc(t.objects, func(a, b v1alpha1.Tunnel) int { return strings.Compare(a.Name, b.Name) })
	var err error
	t.options.ClusterUID, err = clusterUID(ctx, source)
	t.options.ClusterID = cmp.Or(o.ClusterID, t.recordedClusterID(), t.defaultClusterID())
	return t, err
}

// clusterUID returns the UID of the namespace kube-system, or "" when no cluster
// was read.
func clusterUID(ctx context.Context, r client.Reader) (string, error) {
	var system corev1.Namespace
	err := r.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(system.UID), nil
}

// recordedClusterID returns the cluster ID with which the names of the
// controller's tunnels begin, or "".
func (t *tunnels) recordedClusterID() string {
	for i := range t.objects {
		spec := &t.objects[i].Spec
		id, _, _ := strings.Cut(spec.Name, ".")
		name := types.NamespacedName{Namespace: spec.Gateway.Namespace, Name: spec.Gateway.Name}
		ofCluster := t.options.ClusterUID == "" || spec.ClusterUID == t.options.ClusterUID
		if ofCluster && spec.ControllerName == t.options.ControllerName && spec.Name == tunnel.RemoteName(id, name) {
			return id
		}
	}
	return ""
}

func (t *tunnels) defaultClusterID() string {
	if t.options.ClusterUID == "" {
		return ""
	}
	return tunnel.DefaultClusterID(t.options.ClusterUID, t.options.ControllerName)
}

// facts returns the facts for the decisions about a Gateway's tunnel, before
// Cloudflare has been asked. The spec of the Tunnel is up to date, and a Gateway
// without a Tunnel has a new one, unless its settings are not valid.
func (t *tunnels) facts(g *gatewayv1.Gateway, result *gateway.Result) tunnel.Facts {
	name := client.ObjectKeyFromObject(g)
	f := tunnel.Facts{
		Uptime: uptime, Clock: t.now, Options: t.options, Name: name, Object: t.of(name),
		Gateway:    tunnel.Gateway{State: tunnel.GatewayExists, UID: g.UID, Paused: g.Annotations[v1alpha1.PausedAnnotation] == "true"},
		Token:      tunnel.TokenSecret{State: tunnel.TokenPresent},
		Connectors: tunnel.Connectors{Current: true, Exist: true, RolledOut: true},
	}
	request := tunnel.Request{
		Gateway: name, Paused: f.Gateway.Paused, Settings: result.Settings, AccountID: t.account.ForSettings(result.Settings).Account,
		Credentials: t.account.SecretReference(result.Settings), Configuration: result.Configuration(), ServesGRPC: result.ServesGRPC(),
	}
	if f.Object != nil {
		// Manifests alone have neither UIDs nor the controller's flags.
		f.Options.ClusterUID = cmp.Or(f.Options.ClusterUID, f.Object.Spec.ClusterUID)
		f.Gateway.UID = cmp.Or(f.Gateway.UID, types.UID(f.Object.Status.GatewayUID))
		request.AccountID = cmp.Or(request.AccountID, f.Object.Spec.AccountID)
	}
	request.AccountID = cmp.Or(request.AccountID, unknownAccount)
	f.Desired = tunnel.NewDesired(f.Options, request)
	if f.Desired != nil && f.Object != nil && f.Options.ClusterID == "" {
		f.Desired.Spec.Name = f.Object.Spec.Name
	}
	t.bringUpToDate(&f)
	if f.Object != nil {
		f.Rivals = tunnel.Rivals(f.Object, t.objects)
		f.Credentials = t.credentials(f.Object.Spec)
	}
	return f
}

// of returns a copy of the Tunnel object with the name of the Gateway's Tunnel,
// or nil. Its spec may be for something else.
func (t *tunnels) of(name types.NamespacedName) *v1alpha1.Tunnel {
	for i := range t.objects {
		if t.objects[i].Name == tunnel.ObjectName(name) {
			return t.objects[i].DeepCopy()
		}
	}
	return nil
}

// bringUpToDate makes those changes of the Tunnel object in memory that the
// controller makes before it asks Cloudflare.
func (t *tunnels) bringUpToDate(f *tunnel.Facts) {
	switch {
	case f.Object != nil:
		f.Object.Spec = tunnel.DesiredSpec(*f)
	case f.Desired != nil:
		f.Object = &v1alpha1.Tunnel{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: tunnel.ObjectName(f.Name), CreationTimestamp: metav1.NewTime(t.now)},
			Spec:       tunnel.DesiredSpec(*f),
		}
	default:
		return
	}
	if f.Gateway.Paused {
		f.Object.Status.Contested = false
	}
}

// credentials returns whether the controller's API token, as far as it is known,
// is for the account of the Tunnel.
func (t *tunnels) credentials(spec v1alpha1.TunnelSpec) tunnel.Credentials {
	if _, ok := t.account.ForTunnel(spec, t.namespace); !ok && t.account.Account != "" {
		return tunnel.Credentials{State: tunnel.CredentialsWrongAccount}
	}
	return tunnel.Credentials{State: tunnel.CredentialsUsable}
}

// source returns where the API token of the Tunnel comes from.
func (t *tunnels) source(spec v1alpha1.TunnelSpec) credentials.Source {
	from, _ := t.account.ForTunnel(spec, t.namespace)
	if from.Account == unknownAccount {
		from.Account = ""
	}
	return from
}

// expected returns what the Gateway's conditions say about the tunnel when every
// call of Cloudflare succeeds, and the tunnel holds what the controller wrote
// last.
func expected(f tunnel.Facts) tunnel.Outcome {
	if f.Object == nil {
		return tunnel.Outcome{}
	}
	if status := f.Object.Status; status.Configuration.Hash != "" {
		held := status.Configuration.Hash
		if status.Contested {
			held = "" // it was changed outside the controller
		}
		f.Memory.Claimed, f.Memory.InEffect = true, held
		f.Memory.Remote.Configuration = tunnel.RemoteConfiguration{Known: true, Settled: true, Hash: held, NextRead: 2 * uptime}
	}
	return tunnel.Programmed(f)
}

// push translates the outcome for the conditions.
func push(o tunnel.Outcome) gateway.Push {
	p := gateway.Push{State: gateway.PushSucceeded, Message: o.Message}
	if o.State == tunnel.OutcomeFailed {
		p.State = gateway.PushFailed
		if o.Reason == tunnel.ReasonSettingsNotApplied {
			p.Reason = string(o.Reason)
		}
	}
	return p
}
