package adoption

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// maxAnnotation limits the size of the annotation in bytes. The API server accepts 256 KiB
// for all annotations of an object.
const maxAnnotation = 200 << 10

// item is something that the controller is to adopt.
type item interface {
	key() key
	// gatewayName is the Gateway in whose Tunnel's annotation the request is.
	gatewayName() types.NamespacedName
	// entry returns the entry in the annotation.
	entry(requested metav1.Time) any
	// isOpen reports whether the item is neither processed nor lost.
	isOpen() bool
	// conclude sets the result and its explanation; the result is empty for a request that
	// was lost.
	conclude(result v1alpha1.AdoptionResult, message string)
}

// key identifies an item of a Gateway in the annotation and in the status. The zone is empty
// for an application.
type key struct{ zone, name string }

// subject is what the entries of an annotation ask for.
type subject struct {
	annotation string
	requests   func(*v1alpha1.Tunnel) ([]storedRequest, error)
	results    func(*v1alpha1.Tunnel) []storedResult
	// condition is the Gateway's condition that tells why nothing is processed, with one of the
	// reasons.
	condition conditions.Type
	reasons   []conditions.Reason
}

// storedRequest is an entry in the annotation.
type storedRequest struct {
	key
	requested metav1.Time
	entry     any
}

// storedResult is an entry in the Tunnel's status.
type storedResult struct {
	key
	requested metav1.Time
	result    v1alpha1.AdoptionResult
	message   string
}

// request contains when the entries of the annotation without a result were requested.
type request struct {
	subject *subject
	entries map[item]metav1.Time
}

// addRequests adds entries for the first items to the Tunnel's annotation, as many as fit. An
// entry replaces another one with the same key. The time of each entry is later than the time
// of any earlier request for the item, so that results cannot be confused.
func (s *subject) addRequests(t *v1alpha1.Tunnel, items []item, now time.Time) (request, error) {
	existing, err := s.readRequests(t)
	if err != nil {
		return request{}, err
	}
	r := request{subject: s, entries: map[item]metav1.Time{}}
	size := len(t.Annotations[s.annotation])
	for _, i := range items {
		requested := metav1.NewTime(s.requestTime(t, existing, i.key(), now))
		added := storedRequest{i.key(), requested, i.entry(requested)}
		next := append(without(existing, i.key()), added)
		text, err := json.Marshal(added.entry)
		if err != nil {
			return r, err
		}
		if size += len(text) + 1; len(next) > v1alpha1.MaxAdoptions || size > maxAnnotation {
			break
		}
		existing, r.entries[i] = next, requested
	}
	entries := make([]any, len(existing))
	for i, e := range existing {
		entries[i] = e.entry
	}
	text, err := json.Marshal(entries)
	if err == nil && len(r.entries) > 0 {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, s.annotation, string(text))
	}
	return r, err
}

// readRequests returns the entries in the Tunnel's annotation.
func (s *subject) readRequests(t *v1alpha1.Tunnel) ([]storedRequest, error) {
	entries, err := s.requests(t)
	if err != nil {
		return nil, fmt.Errorf("the annotation %s of Tunnel %s/%s is not valid: %w; remove it", s.annotation, t.Namespace, t.Name, err)
	}
	return entries, nil
}

func without(entries []storedRequest, k key) []storedRequest {
	return slices.DeleteFunc(slices.Clone(entries), func(e storedRequest) bool { return e.key == k })
}

// requestTime returns the time of a new request for the item, in whole seconds as the API
// server stores times.
func (s *subject) requestTime(t *v1alpha1.Tunnel, existing []storedRequest, k key, now time.Time) time.Time {
	now = now.UTC().Truncate(time.Second)
	after := func(other key, previous metav1.Time) {
		if next := previous.UTC().Add(time.Second); other == k && next.After(now) {
			now = next
		}
	}
	for _, e := range existing {
		after(e.key, e.requested)
	}
	for _, e := range s.results(t) {
		after(e.key, e.requested)
	}
	return now
}

// collect moves the results in the Tunnel's status to the items, and returns how many there
// were. An entry that is neither in the status nor in the annotation is lost: the controller
// writes the result first, and removes the entry afterwards.
func (r request) collect(t *v1alpha1.Tunnel) (int, error) {
	existing, err := r.subject.readRequests(t)
	if err != nil {
		return 0, err
	}
	results := map[key]storedResult{}
	for _, result := range r.subject.results(t) {
		results[result.key] = result
	}
	requested := map[key]metav1.Time{}
	for _, e := range existing {
		requested[e.key] = e.requested
	}
	collected := 0
	for i, entry := range r.entries {
		result, at := results[i.key()], requested[i.key()]
		switch {
		case result.result != "" && result.requested.Equal(&entry):
			i.conclude(result.result, result.message)
		case at.Equal(&entry):
			continue
		default:
			i.conclude("", "The request is lost: another client changed the annotation "+r.subject.annotation+" of the Tunnel.")
		}
		delete(r.entries, i)
		collected++
	}
	return collected, nil
}
