package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const (
	// pollInterval is the interval at which the objects are read if no watch reports a
	// change, for example because the user may not watch them.
	pollInterval = 5 * time.Second
	// A final effect must last for settleTime. The controller writes the statuses of the
	// Tunnel and the Gateway one after the other.
	settleTime = time.Second
)

// errTimeout is the context's cause after the timeout.
var errTimeout = errors.New("timeout")

// ErrStillRequested is returned when an operation was requested and the caller has
// canceled the wait.
var ErrStillRequested = errors.New("interrupted; the request stays in effect")

// wait waits until the operation is in effect, a user must act or the context ends.
func (t Target) wait(ctx context.Context, o Operation, w Waiting) (string, error) {
	changed, ticker := t.changes(ctx), time.NewTicker(pollInterval)
	defer ticker.Stop()
	current, hide := effect{}, func() {}
	defer func() { hide() }()
	var settled <-chan time.Time
	for {
		next, err := t.observe(ctx, o)
		if err != nil {
			return "", err
		}
		if ctx.Err() == nil && next != current {
			hide()
			if current, settled, hide = next, nil, func() {}; next.final() {
				settled = time.After(settleTime)
			} else {
				hide = w.Show(fmt.Sprintf("%s: %s", t, next.outstanding))
			}
		}
		select {
		case <-settled:
			return t.result(o, current)
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return "", t.unfinished(ctx, o, current, w.Timeout)
		}
	}
}

// result returns the result of an operation with a final effect.
func (t Target) result(o Operation, e effect) (string, error) {
	switch {
	case e.lost != "" && o != Wait:
		return "", fmt.Errorf("%s: the request is lost: %s", t, e.lost)
	case e.lost != "":
		return "", fmt.Errorf("%s: %s", t, e.lost)
	case e.refused != "":
		return "", fmt.Errorf("%s: %s%s", t, e.refused, o.remainder())
	default:
		return fmt.Sprintf("%s %s", t, e.done), nil
	}
}

// unfinished returns the error for a wait that has ended before the operation was in
// effect.
func (t Target) unfinished(ctx context.Context, o Operation, e effect, timeout time.Duration) error {
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return fmt.Errorf("%s: timed out after %s: %s%s", t, timeout, cmp.Or(e.outstanding, e.done, e.refused, e.lost, notProcessed), o.remainder())
	case o == Wait:
		return ctx.Err()
	default:
		return ErrStillRequested
	}
}

// remainder returns how an error ends: with whether the request stays in effect.
func (o Operation) remainder() string {
	if o == Wait {
		return ""
	}
	return ". The request stays in effect"
}

// observe reads the objects and returns how far the operation is. A failed read does not
// end the wait, unless a permission is missing.
func (t Target) observe(ctx context.Context, o Operation) (effect, error) {
	found, lost, err := t.readObjects(ctx, o)
	switch {
	case apierrors.IsForbidden(err):
		return effect{}, err
	case err != nil:
		return effect{outstanding: err.Error()}, nil
	case lost != "":
		return effect{lost: lost}, nil
	default:
		return o.effect(found), nil
	}
}

// readObjects reads the Gateway and the Tunnel. It returns why the controller does not
// manage them any longer, or "".
func (t Target) readObjects(ctx context.Context, o Operation) (found objects, lost string, err error) {
	g, object := &gatewayv1.Gateway{}, &v1alpha1.Tunnel{}
	exists, err := t.read(ctx, t.Gateway, g)
	if exists {
		var class *gatewayv1.GatewayClass
		found.gateway = g
		class, lost, err = t.readClass(ctx, o, g)
		if class != nil && o == Wait {
			found.class, err = t.readSettings(ctx, class)
		}
	}
	if err != nil || lost != "" {
		return found, lost, err
	}
	if exists, err = t.read(ctx, t.tunnelKey(), object); exists {
		found.tunnel = object
		lost = t.tunnelProblem(object)
	}
	return found, lost, err
}

// changes returns a channel that receives a value after the objects change, until the
// context ends.
func (t Target) changes(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	go t.follow(ctx, &gatewayv1.GatewayList{}, t.Gateway, changed)
	go t.follow(ctx, &v1alpha1.TunnelList{}, t.tunnelKey(), changed)
	return changed
}

// follow watches one object. If the watch fails or ends, follow starts it again after the
// pollInterval.
func (t Target) follow(ctx context.Context, list client.ObjectList, key types.NamespacedName, changed chan<- struct{}) {
	for ctx.Err() == nil {
		w, err := t.Client.Watch(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
		if err == nil {
			forward(ctx, w, changed)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}

// forward sends a value for each event, until the watch or the context ends.
func forward(ctx context.Context, w watch.Interface, changed chan<- struct{}) {
	defer w.Stop()
	defer context.AfterFunc(ctx, w.Stop)()
	for range w.ResultChan() {
		select {
		case changed <- struct{}{}:
		default: // the next read sees this change too
		}
	}
}
