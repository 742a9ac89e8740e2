package adoption

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// maxAnnotation limits the size of the annotation in bytes. The API server accepts 256 KiB
// for all annotations of an object.
const maxAnnotation = 200 << 10

// request contains the entries of the annotation without a result.
type request struct {
	entries map[*Candidate]v1alpha1.RecordAdoption
}

// key identifies a record in the annotation and in the status.
type key struct{ zone, name string }

func (c *Candidate) key() key { return key{c.Zone, c.Name} }

// addRequests adds entries for the first candidates to the Tunnel's annotation, as many as
// fit. An entry replaces another one with the same zone and name. The time of each entry is
// later than the time of any earlier request for the record, so that results cannot be
// confused.
func addRequests(t *v1alpha1.Tunnel, candidates []*Candidate, now time.Time) (request, error) {
	existing, err := readRequests(t)
	if err != nil {
		return request{}, err
	}
	r := request{entries: map[*Candidate]v1alpha1.RecordAdoption{}}
	size := len(t.Annotations[v1alpha1.AdoptRecordsAnnotation])
	for _, c := range candidates {
		entry := v1alpha1.RecordAdoption{
			Zone: c.Zone, Name: c.Name, ID: string(c.Record.ID), Type: c.Record.Type, Content: c.Record.Content,
			Requested: metav1.NewTime(requestTime(t, existing, c.key(), now)),
		}
		next := append(without(existing, c.key()), entry)
		text, err := json.Marshal(entry)
		if err != nil {
			return r, err
		}
		if size += len(text) + 1; len(next) > v1alpha1.MaxAdoptions || size > maxAnnotation {
			break
		}
		existing, r.entries[c] = next, entry
	}
	text, err := json.Marshal(existing)
	if err == nil && len(r.entries) > 0 {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.AdoptRecordsAnnotation, string(text))
	}
	return r, err
}

// readRequests returns the entries in the Tunnel's annotation.
func readRequests(t *v1alpha1.Tunnel) ([]v1alpha1.RecordAdoption, error) {
	entries, err := t.RequestedAdoptions()
	if err != nil {
		return nil, fmt.Errorf("the annotation %s of Tunnel %s/%s is not valid: %w; remove it", v1alpha1.AdoptRecordsAnnotation, t.Namespace, t.Name, err)
	}
	return entries, nil
}

func without(entries []v1alpha1.RecordAdoption, k key) []v1alpha1.RecordAdoption {
	return slices.DeleteFunc(slices.Clone(entries), func(e v1alpha1.RecordAdoption) bool { return key{e.Zone, e.Name} == k })
}

// requestTime returns the time of a new request for the record, in whole seconds as the API
// server stores times.
func requestTime(t *v1alpha1.Tunnel, existing []v1alpha1.RecordAdoption, k key, now time.Time) time.Time {
	now = now.UTC().Truncate(time.Second)
	after := func(previous metav1.Time) {
		if next := previous.UTC().Add(time.Second); next.After(now) {
			now = next
		}
	}
	for _, e := range existing {
		if (key{e.Zone, e.Name}) == k {
			after(e.Requested)
		}
	}
	if t.Status.DNS != nil {
		for _, e := range t.Status.DNS.Adoptions {
			if (key{e.Zone, e.Name}) == k {
				after(e.Requested)
			}
		}
	}
	return now
}

// collect moves the results in the Tunnel's status to the candidates, and returns how many
// there were. An entry that is neither in the status nor in the annotation is lost: the
// controller writes the result first, and removes the entry afterwards.
func (r request) collect(t *v1alpha1.Tunnel) (int, error) {
	existing, err := readRequests(t)
	if err != nil {
		return 0, err
	}
	results := map[key]v1alpha1.RecordAdoptionResult{}
	if t.Status.DNS != nil {
		for _, result := range t.Status.DNS.Adoptions {
			results[key{result.Zone, result.Name}] = result
		}
	}
	requested := map[key]metav1.Time{}
	for _, e := range existing {
		requested[key{e.Zone, e.Name}] = e.Requested
	}
	collected := 0
	for c, entry := range r.entries {
		result, at := results[c.key()], requested[c.key()]
		switch {
		case result.Result != "" && result.Requested.Equal(&entry.Requested):
			c.Result, c.Message = result.Result, result.Message
		case at.Equal(&entry.Requested):
			continue
		default:
			c.Message = lostMessage
		}
		delete(r.entries, c)
		collected++
	}
	return collected, nil
}

const lostMessage = "The request is lost: another client changed the annotation " + v1alpha1.AdoptRecordsAnnotation + " of the Tunnel."
