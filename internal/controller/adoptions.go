package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// resultLifetime is how long the Tunnel's status has the result of an adoption.
	resultLifetime = 24 * time.Hour
	// maxResultMessage is the maximum size of the message in a result, in bytes.
	maxResultMessage = 2048
)

// adoptions is how administrators request to adopt DNS records or applications: an
// annotation on the Tunnel has requests of the type Q, and its status results of the type R.
type adoptions[Q, R any] struct {
	annotation string
	// things are what is adopted, for messages.
	things string
	// invalid is the event about an annotation that is not valid.
	invalid conditions.EventReason
	// requests returns the entries of the annotation, and results those of the status.
	requests func(*v1alpha1.Tunnel) ([]Q, error)
	results  func(*v1alpha1.Tunnel) []R
	// ofRequest and ofResult return what identifies a request and the request of a result.
	ofRequest func(Q) adoptionKey
	ofResult  func(R) adoptionKey
}

// adoptionKey identifies a request: what is to be adopted, and when that was requested.
type adoptionKey struct {
	zone, name string
	requested  metav1.Time
}

// answers reports whether the result is that of the request. A Tunnel's status has times
// without fractions of a second.
func (k adoptionKey) answers(request adoptionKey) bool {
	return k.sameThing(request) && k.requested.Unix() == request.requested.Unix()
}

func (k adoptionKey) sameThing(other adoptionKey) bool {
	return k.zone == other.zone && k.name == other.name
}

// isAnswered reports whether the results contain that of the request.
func (a adoptions[Q, R]) isAnswered(results []R, request Q) bool {
	return slices.ContainsFunc(results, func(r R) bool { return a.ofResult(r).answers(a.ofRequest(request)) })
}

// unanswered returns the requests in the Tunnel's annotation that have a result neither in
// its status nor in the results. An annotation that is not valid has none: the Gateway's
// reconcile reports it.
func (a adoptions[Q, R]) unanswered(t *v1alpha1.Tunnel, results []R) []Q {
	requests, _ := a.requests(t)
	return slices.DeleteFunc(slices.Clone(requests), func(q Q) bool { return a.isAnswered(a.results(t), q) || a.isAnswered(results, q) })
}

// merge returns the newest result for each thing, without results that are older than a day.
// The results of requests that the annotation still has remain.
func (a adoptions[Q, R]) merge(added, recorded []R, requests []Q, now time.Time) []R {
	type thing struct{ zone, name string }
	seen := map[thing]bool{}
	pending := func(r R) bool {
		return slices.ContainsFunc(requests, func(q Q) bool { return a.ofResult(r).answers(a.ofRequest(q)) })
	}
	var results []R
	for _, r := range slices.Concat(added, recorded) {
		key := a.ofResult(r)
		if t := (thing{key.zone, key.name}); !seen[t] && (pending(r) || now.Sub(key.requested.Time) < resultLifetime) {
			seen[t] = true
			results = append(results, r)
		}
	}
	slices.SortStableFunc(results, func(x, y R) int {
		last := a.ofResult(x).requested
		return a.ofResult(y).requested.Compare(last.Time)
	})
	return results[:min(len(results), v1alpha1.MaxAdoptions)]
}

// removeAnswered removes the requests from the Tunnel's annotation whose results are in its
// status. It reports whether the Tunnel has changed, and why the annotation is not valid.
func (a adoptions[Q, R]) removeAnswered(t *v1alpha1.Tunnel) (changed bool, invalid error) {
	requests, err := a.requests(t)
	if err != nil {
		return false, err
	}
	results := a.results(t)
	remaining := slices.DeleteFunc(slices.Clone(requests), func(q Q) bool { return a.isAnswered(results, q) })
	if len(remaining) == len(requests) {
		return false, nil
	}
	t.Annotations = maps.Clone(t.Annotations)
	delete(t.Annotations, a.annotation)
	if len(remaining) > 0 {
		text, err := json.Marshal(remaining)
		if err != nil {
			return false, fmt.Errorf("write the remaining requests: %w", err)
		}
		t.Annotations[a.annotation] = string(text)
	}
	return true, nil
}

// removeAdopted removes the requests from the Tunnel's annotations whose results are in the
// Tunnel's status. The update is based on the version that was written.
func (r *run) removeAdopted(ctx context.Context) error {
	t := r.tunnel.object
	if t == nil || isManagedElsewhere(t, r.process.options.Tunnel) {
		return nil
	}
	r.process.dns.dropOutcomes(r.key.NamespacedName, recordAdoptions.results(t))
	r.process.access.dropOutcomes(r.key.NamespacedName, applicationAdoptions.results(t))
	remaining := t.DeepCopy()
	records := removeAnswered(r, t, remaining, recordAdoptions)
	if applications := removeAnswered(r, t, remaining, applicationAdoptions); !records && !applications {
		return nil
	}
	switch err := r.process.objects.client.Update(ctx, remaining); {
	case err == nil:
		r.tunnel.object = remaining
	case !isStale(err):
		return fmt.Errorf("remove finished requests from Tunnel %s: %w", client.ObjectKeyFromObject(t), err)
	}
	return nil // the watch of a changed Tunnel requeues the Gateway
}

// removeAnswered removes the requests with results from remaining, a copy of the Tunnel. It
// reports whether there are some, and an annotation that is not valid.
func removeAnswered[Q, R any](r *run, t, remaining *v1alpha1.Tunnel, a adoptions[Q, R]) (changed bool) {
	changed, err := a.removeAnswered(remaining)
	r.reportInvalidAdoptions(t, a.annotation, a.things, a.invalid, err)
	return changed
}

// reportInvalidAdoptions emits an event on the Tunnel if its annotation is not valid, once
// for each value.
func (r *run) reportInvalidAdoptions(t *v1alpha1.Tunnel, annotation, things string, event conditions.EventReason, err error) {
	if err == nil {
		delete(r.tunnel.invalidAdoptions, annotation)
		return
	}
	if hash := tokenVersion(provider.Token(t.Annotations[annotation])); hash != r.tunnel.invalidAdoptions[annotation] {
		r.tunnel.invalidAdoptions[annotation] = hash
		r.process.notify.emitInvalidAdoptions(t, event, annotation, things, err)
	}
}
