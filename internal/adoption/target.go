package adoption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// Target is the controller that adopts records and applications.
type Target struct {
	Client         client.WithWatch
	ControllerName gatewayv1.GatewayController
	// ControllerNamespace is the Tunnels' namespace.
	ControllerNamespace string
	// Timeout limits the wait for the results of each round.
	Timeout time.Duration
	// Show shows what is outstanding until hide is called.
	Show func(text string) (hide func())
}

const (
	// pollInterval is the interval at which the Tunnel is read if no watch reports a
	// change, for example because the user may not watch it.
	pollInterval = 5 * time.Second
	// hintDelay is how long the controller must process nothing before the text about the
	// wait explains what it may wait for.
	hintDelay = 10 * time.Second
)

// errTimeout is the cause of a round's context after the timeout.
var errTimeout = errors.New("timeout")

// errOtherGateway means that the Tunnel with the name for the Gateway belongs to another one.
var errOtherGateway = errors.New("the Gateway has no Tunnel")

// ErrStillRequested is returned when the caller has canceled the wait.
var ErrStillRequested = errors.New("interrupted; the requests without a result stay in effect for an hour")

// Adopt requests the adoption of the candidates' records and sets their results. It requests
// at most [v1alpha1.MaxAdoptions] at a time. After an error, candidates without a result may
// have been requested.
func (t Target) Adopt(ctx context.Context, candidates []*Candidate) error {
	return t.adopt(ctx, records, items(candidates))
}

// AdoptApplications is like Adopt, for Cloudflare Access applications.
func (t Target) AdoptApplications(ctx context.Context, candidates []*Application) error {
	return t.adopt(ctx, applications, items(candidates))
}

// items returns the candidates as items.
func items[T item](candidates []T) []item {
	all := make([]item, len(candidates))
	for i, c := range candidates {
		all[i] = c
	}
	return all
}

func (t Target) adopt(ctx context.Context, s *subject, all []item) error {
	for _, group := range byGateway(all) {
		if err := t.adoptGroup(ctx, s, group); err != nil {
			return fmt.Errorf("Gateway %s: %w", group[0].gatewayName(), err)
		}
	}
	return nil
}

// adoptGroup requests the adoption of one Gateway's items, round by round.
func (t Target) adoptGroup(ctx context.Context, s *subject, group []item) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	// One watch for all rounds: the controller removes the entries of a round after it has
	// written their results, and the next round can begin between the two.
	changed := t.changes(watching, group[0].gatewayName())
	for ; len(group) > 0; group = slices.DeleteFunc(group, func(i item) bool { return !i.isOpen() }) {
		if err := t.round(ctx, s, group, changed); err != nil {
			return err
		}
	}
	return nil
}

// byGateway groups the items, in their order.
func byGateway(all []item) [][]item {
	var groups [][]item
	index := map[types.NamespacedName]int{}
	for _, i := range all {
		at, ok := index[i.gatewayName()]
		if !ok {
			at = len(groups)
			index[i.gatewayName()], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

// round requests as many adoptions as fit into the annotation of the Gateway's Tunnel, and
// waits for the results.
func (t Target) round(ctx context.Context, s *subject, group []item, changed <-chan struct{}) error {
	limited, cancel := context.WithTimeoutCause(ctx, t.Timeout, errTimeout)
	defer cancel()
	w := waiting{Target: t, subject: s, gateway: group[0].gatewayName(), changed: changed}
	defer w.end()
	err := w.run(limited, group)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && w.requested:
		return ErrStillRequested
	case ctx.Err() == nil && errors.Is(context.Cause(limited), errTimeout):
		return w.timeoutError()
	}
	return err
}

// readTunnel reads the Gateway's Tunnel.
func (t Target) readTunnel(ctx context.Context, gateway types.NamespacedName) (*v1alpha1.Tunnel, error) {
	object := &v1alpha1.Tunnel{}
	key := types.NamespacedName{Namespace: t.ControllerNamespace, Name: tunnel.ObjectName(gateway)}
	if err := t.Client.Get(ctx, key, object); err != nil {
		return nil, explain("read", key, err)
	}
	spec := object.Spec
	if spec.ControllerName != string(t.ControllerName) || spec.Gateway != (v1alpha1.GatewayReference{Namespace: gateway.Namespace, Name: gateway.Name}) {
		return nil, fmt.Errorf("%w: Tunnel %s is for Gateway %s/%s of controller %s", errOtherGateway, key, spec.Gateway.Namespace, spec.Gateway.Name, spec.ControllerName)
	}
	return object, nil
}

// write adds entries to the annotation of the Gateway's Tunnel. It adds none while the
// annotation has no space.
func (t Target) write(ctx context.Context, s *subject, group []item) (request, error) {
	for {
		object, err := t.readTunnel(ctx, group[0].gatewayName())
		if err != nil {
			return request{}, err
		}
		before := object.DeepCopy()
		r, err := s.addRequests(object, group, time.Now())
		if err != nil || len(r.entries) == 0 {
			return r, err
		}
		err = t.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return r, explain("annotate", client.ObjectKeyFromObject(object), err)
		}
	}
}

// explain adds what was attempted to an error from the API server.
func explain(attempted string, key types.NamespacedName, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s Tunnel %s: %w; docs/commands.md contains the required role", attempted, key, err)
	default:
		return fmt.Errorf("%s Tunnel %s: %w", attempted, key, err)
	}
}

// hint returns why the controller may not have processed the requests: the Gateway's
// condition, unless it only reports what is not managed.
func (t Target) hint(ctx context.Context, s *subject, gateway types.NamespacedName) string {
	const unknown = "the controller has not processed the requests yet; check that it runs, and its log"
	g := &gatewayv1.Gateway{}
	if err := t.Client.Get(ctx, gateway, g); err != nil {
		return unknown
	}
	c := s.condition.Find(g.Status.Conditions)
	if c == nil {
		return unknown + ". The Gateway has no condition " + s.condition.String()
	}
	if slices.ContainsFunc(s.reasons, func(r conditions.Reason) bool { return r.Is(c) }) {
		return fmt.Sprintf("the Gateway is not %s: %s", s.condition, strings.TrimSuffix(terminal.Escape(c.Message), "."))
	}
	return unknown
}
