package adoption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// waiting is one round's wait for results.
type waiting struct {
	Target
	subject *subject
	gateway types.NamespacedName
	changed <-chan struct{}
	// requested reports whether the annotation contains the requests.
	requested bool
	// text is what the terminal shows until hide is called.
	text string
	hide func()
	// progress is when the last result arrived, or the wait began.
	progress time.Time
}

// run requests the adoptions and waits until each request has a result or is lost.
func (w *waiting) run(ctx context.Context, group []item) error {
	w.progress = time.Now()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	r, err := w.write(ctx, w.subject, group)
	for err == nil && len(r.entries) == 0 {
		w.show("other requests fill the annotation " + w.subject.annotation + " of the Tunnel")
		if err = w.next(ctx, ticker.C); err == nil {
			r, err = w.write(ctx, w.subject, group)
		}
	}
	w.requested = err == nil
	total := len(r.entries)
	for err == nil && len(r.entries) > 0 {
		w.showResults(ctx, total-len(r.entries), total)
		if err = w.next(ctx, ticker.C); err == nil {
			err = w.collect(ctx, r)
		}
	}
	return err
}

// timeoutError returns the error for a wait that has ended before all results arrived.
func (w *waiting) timeoutError() error {
	text := fmt.Sprintf("timed out after %s: %s", w.Timeout, cmp.Or(w.text, "the API server does not respond"))
	if w.requested {
		text += ". The requests without a result stay in effect for an hour"
	}
	return errors.New(text)
}

// next waits until the Tunnel may have changed.
func (w *waiting) next(ctx context.Context, tick <-chan time.Time) error {
	select {
	case <-w.changed:
		return nil
	case <-tick:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// collect reads the results. A failed read does not end the wait, unless the Tunnel is gone
// or a permission is missing.
func (w *waiting) collect(ctx context.Context, r request) error {
	object, err := w.readTunnel(ctx, w.gateway)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || errors.Is(err, errOtherGateway):
		return err
	case err != nil:
		return ctx.Err()
	}
	collected, err := r.collect(object)
	if collected > 0 {
		w.progress = time.Now()
	}
	return err
}

// showResults shows the number of results, and after a while without one, why there may be
// none.
func (w *waiting) showResults(ctx context.Context, done, total int) {
	text := fmt.Sprintf("the controller has processed %d of %d requests", done, total)
	if time.Since(w.progress) >= hintDelay {
		text += ": " + w.hint(ctx, w.subject, w.gateway)
	}
	w.show(text)
}

// show replaces the text.
func (w *waiting) show(text string) {
	if text == w.text {
		return
	}
	w.end()
	w.text, w.hide = text, w.Show(fmt.Sprintf("Gateway %s: %s", w.gateway, text))
}

// end removes the text.
func (w *waiting) end() {
	if w.hide != nil {
		w.hide()
		w.hide = nil
	}
}

// changes returns a channel that receives a value after the Gateway's Tunnel changes, until
// the context ends.
func (t Target) changes(ctx context.Context, gateway types.NamespacedName) <-chan struct{} {
	changed := make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			t.follow(ctx, tunnel.ObjectName(gateway), changed)
			select {
			case <-ctx.Done():
			case <-time.After(pollInterval):
			}
		}
	}()
	return changed
}

// follow sends a value for each change of the Tunnel with the name until the watch or the
// context ends.
func (t Target) follow(ctx context.Context, name string, changed chan<- struct{}) {
	w, err := t.Client.Watch(ctx, &v1alpha1.TunnelList{}, client.InNamespace(t.ControllerNamespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return // for example because the user may not watch Tunnels
	}
	defer w.Stop()
	defer context.AfterFunc(ctx, w.Stop)()
	for range w.ResultChan() {
		select {
		case changed <- struct{}{}:
		default: // the next read sees this change too
		}
	}
}
