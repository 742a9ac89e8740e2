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
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

const (
	// uptime is how long the controller is assumed to have run. It is longer than any
	// request, so that no decision waits for a late response, and shorter than the
	// interval at which the controller reads tokens.
	uptime = time.Hour
	// unknownAccount represents the controller's account if the flags do not set it.
	unknownAccount = "unknown"
)

// tunnels contains the controller's Tunnel objects and identifies its installation.
type tunnels struct {
	objects   []v1alpha1.Tunnel
	options   tunnel.Options
	namespace string
	account   credentials.Default
	now       time.Time
}

// newTunnels reads the Tunnel objects and determines the cluster ID.
func newTunnels(ctx context.Context, source *state.Source, o Options, now time.Time) (*tunnels, error) {
	t := &tunnels{namespace: o.ControllerNamespace, account: o.Account, now: now, options: tunnel.Options{
		ControllerName: string(o.ControllerName), RetirementDelay: uptime, DriftInterval: uptime,
	}}
	var list v1alpha1.TunnelList
	if err := source.List(ctx, &list, client.InNamespace(o.ControllerNamespace)); err != nil {
		return nil, fmt.Errorf("list Tunnels: %w", err)
	}
	t.objects = list.Items
	slices.SortFunc(t.objects, func(a, b v1alpha1.Tunnel) int { return strings.Compare(a.Name, b.Name) })
	var err error
	t.options.ClusterUID, err = clusterUID(ctx, source)
	t.options.ClusterID = cmp.Or(o.ClusterID, t.recordedClusterID(), t.defaultClusterID())
	return t, err
}

// clusterUID returns the UID of the namespace kube-system, or "" when no cluster was
// read.
func clusterUID(ctx context.Context, r client.Reader) (string, error) {
	var system corev1.Namespace
	err := r.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(system.UID), nil
}

// recordedClusterID returns the cluster ID in a tunnel name in this installation, or
// "".
func (t *tunnels) recordedClusterID() string {
	for i := range t.objects {
		spec := &t.objects[i].Spec
		id, _, _ := strings.Cut(spec.Name, ".")
		name := types.NamespacedName{Namespace: spec.Gateway.Namespace, Name: spec.Gateway.Name}
		sameCluster := t.options.ClusterUID == "" || spec.ClusterUID == t.options.ClusterUID
		if sameCluster && spec.ControllerName == t.options.ControllerName && spec.Name == tunnel.RemoteName(id, name) {
			return id
		}
	}
	return ""
}

// defaultClusterID returns the controller's default, or "" without a cluster.
func (t *tunnels) defaultClusterID() string {
	if t.options.ClusterUID == "" {
		return ""
	}
	return tunnel.DefaultClusterID(t.options.ClusterUID, t.options.ControllerName)
}

// optionsFor returns the options for deciding about the Gateway with the Tunnel object,
// which can be nil. Without a cluster, neither UIDs nor the controller's flags are
// known.
func (t *tunnels) optionsFor(object *v1alpha1.Tunnel, o gateway.Options) decision.Options {
	all := decision.Options{Gateway: o, Tunnel: t.options, Account: t.account}
	if object != nil {
		all.Tunnel.ClusterUID = cmp.Or(all.Tunnel.ClusterUID, object.Spec.ClusterUID)
		all.Account.Account = cmp.Or(all.Account.Account, object.Spec.AccountID)
	}
	all.Account.Account = cmp.Or(all.Account.Account, unknownAccount)
	return all
}

// facts returns the facts about a Gateway's tunnel before the first request to
// Cloudflare. object is its Tunnel, to which the facts give the desired spec. A Gateway
// without a Tunnel gets a new one in memory, unless its settings are not valid.
func (t *tunnels) facts(g *gatewayv1.Gateway, object *v1alpha1.Tunnel, d *decision.Decision, o tunnel.Options) tunnel.Facts {
	f := tunnel.Facts{
		Uptime: uptime, Clock: t.now, Options: o, Name: client.ObjectKeyFromObject(g), Object: object,
		Gateway:    tunnel.Gateway{State: tunnel.GatewayExists, UID: g.UID, Paused: d.Paused()},
		Token:      tunnel.TokenSecret{State: tunnel.TokenPresent},
		Connectors: tunnel.Connectors{Current: true, Exist: true, RolledOut: true},
	}
	if object != nil {
		f.Gateway.UID = cmp.Or(f.Gateway.UID, types.UID(object.Status.GatewayUID))
	}
	f.Desired = desired(d, f)
	t.updateObject(&f)
	if f.Object != nil {
		f.Rivals = tunnel.Rivals(f.Object, t.objects)
		f.Credentials = t.credentials(f.Object.Spec)
	}
	return f
}

// desired returns the desired state for the Tunnel in the facts, or nil. Without a
// cluster ID, the recorded name is the desired one.
func desired(d *decision.Decision, f tunnel.Facts) *tunnel.Desired {
	all := d.Desired(f.Object)
	if all != nil && f.Object != nil && f.Options.ClusterID == "" {
		all.Spec.Name = f.Object.Spec.Name
	}
	return all
}

// tunnel returns a copy of the Tunnel object with the name for the Gateway, or nil. The
// object's spec may refer to another Gateway.
func (t *tunnels) tunnel(name types.NamespacedName) *v1alpha1.Tunnel {
	for i := range t.objects {
		if t.objects[i].Name == tunnel.ObjectName(name) {
			return t.objects[i].DeepCopy()
		}
	}
	return nil
}

// updateObject applies the changes that the controller makes to the Tunnel object
// before its first request to Cloudflare, in memory.
func (t *tunnels) updateObject(f *tunnel.Facts) {
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
	if !tunnel.IsNewer(f.Object) {
		f.Object.Status.SchemaVersion = tunnel.SchemaVersion
	}
}

// credentials reports whether the API token, as far as it is known, belongs to the
// Tunnel's account.
func (t *tunnels) credentials(spec v1alpha1.TunnelSpec) tunnel.Credentials {
	if _, ok := t.account.ForTunnel(spec, t.namespace); !ok && t.account.Account != "" {
		return tunnel.Credentials{State: tunnel.CredentialsWrongAccount}
	}
	return tunnel.Credentials{State: tunnel.CredentialsUsable}
}

// credentialSource returns where the Tunnel's API token comes from.
func (t *tunnels) credentialSource(spec v1alpha1.TunnelSpec) credentials.Source {
	from, _ := t.account.ForTunnel(spec, t.namespace)
	if from.Account == unknownAccount {
		from.Account = ""
	}
	return from
}

// expectedOutcome returns the outcome for the Gateway's conditions. It assumes that
// all requests to Cloudflare succeed, and that the tunnel has the configuration that
// the controller wrote last.
func expectedOutcome(f tunnel.Facts) tunnel.Outcome {
	if f.Object == nil {
		return tunnel.Outcome{State: tunnel.OutcomeInEffect}
	}
	if status := f.Object.Status; status.Configuration.Hash != "" {
		hash := status.Configuration.Hash
		if status.Contested {
			hash = "" // another writer changed the configuration
		}
		f.Memory.Claimed, f.Memory.InEffect = true, hash
		f.Memory.Remote.Configuration = tunnel.RemoteConfiguration{Known: true, Settled: true, Hash: hash, NextRead: 2 * uptime}
	}
	o := tunnel.Programmed(f)
	if o.State == tunnel.OutcomePending {
		o.State = tunnel.OutcomeInEffect
	}
	return o
}
