package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// applicationAdoptions are the requests to adopt applications of Cloudflare Access.
var applicationAdoptions = adoptions[v1alpha1.ApplicationAdoption, v1alpha1.ApplicationAdoptionResult]{
	annotation: v1alpha1.AdoptApplicationsAnnotation, things: "application", invalid: conditions.EventInvalidAdoptApplications,
	requests: (*v1alpha1.Tunnel).RequestedApplicationAdoptions, results: recordedApplicationResults,
	ofRequest: func(q v1alpha1.ApplicationAdoption) adoptionKey {
		return adoptionKey{name: q.Hostname, requested: q.Requested}
	},
	ofResult: func(r v1alpha1.ApplicationAdoptionResult) adoptionKey {
		return adoptionKey{name: r.Hostname, requested: r.Requested}
	},
}

// recordedApplicationResults returns the results in the Tunnel's status.
func recordedApplicationResults(t *v1alpha1.Tunnel) []v1alpha1.ApplicationAdoptionResult {
	if t.Status.Access == nil {
		return nil
	}
	return t.Status.Access.Adoptions
}

// newApplicationResult returns a result for the Tunnel's status, whose fields have limits.
func newApplicationResult(request v1alpha1.ApplicationAdoption, result v1alpha1.AdoptionResult, text string) v1alpha1.ApplicationAdoptionResult {
	return v1alpha1.ApplicationAdoptionResult{
		Hostname: request.Hostname, Requested: request.Requested.Rfc3339Copy(), Result: result, Message: message.Cut(text, maxResultMessage),
	}
}

// requestedAdoptions returns the requests for the account that have no result yet. A Tunnel
// of another cluster, or of a newer version of the controller, requests nothing, and neither
// does a Tunnel whose Gateway was not decided about yet: the book could not remember the
// result.
func (b *accessBook) requestedAdoptions(key accountKey, tunnels []v1alpha1.Tunnel, o tunnel.Options) (found []access.Adoption) {
	for i := range tunnels {
		t, name := &tunnels[i], gatewayOf(&tunnels[i]).NamespacedName
		if t.Spec.AccountID != key.id || isManagedElsewhere(t, o) || !b.has(name) {
			continue
		}
		for _, request := range applicationAdoptions.unanswered(t, b.outcomes(name)) {
			found = append(found, access.Adoption{ApplicationAdoption: request, Gateway: name})
		}
	}
	return found
}

// has reports whether the book has the Gateway.
func (b *accessBook) has(name types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[name] != nil
}

// outcomes returns the results of adoptions that the Tunnel's status may not have yet.
func (b *accessBook) outcomes(name types.NamespacedName) (results []v1alpha1.ApplicationAdoptionResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.entries[name]; entry != nil {
		for _, o := range entry.outcomes {
			results = append(results, newApplicationResult(o.ApplicationAdoption, o.Result, o.Message))
		}
	}
	return results
}

// adopted records the results of adoptions, for the statuses of their Tunnels.
func (b *accessBook) adopted(outcomes []access.AdoptionOutcome) {
	var changed []types.NamespacedName
	b.mu.Lock()
	for _, o := range outcomes {
		if entry := b.entries[o.Gateway]; entry != nil {
			entry.outcomes = append(entry.outcomes, o)
			changed = append(changed, o.Gateway)
		}
	}
	b.mu.Unlock()
	b.requeueAll(changed)
}

// dropOutcomes forgets the results that the Tunnel's status has.
func (b *accessBook) dropOutcomes(name types.NamespacedName, written []v1alpha1.ApplicationAdoptionResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.entries[name]; entry != nil {
		entry.outcomes = slices.DeleteFunc(entry.outcomes, func(o access.AdoptionOutcome) bool {
			return applicationAdoptions.isAnswered(written, o.ApplicationAdoption)
		})
	}
}

// adoptionResults returns the results of adoptions for the Tunnel's status: the results that
// it has, those of this process, and a refusal of each request if no GatewayClass manages the
// account's applications.
func (b *accessBook) adoptionResults(t *v1alpha1.Tunnel, now time.Time) []v1alpha1.ApplicationAdoptionResult {
	requests, _ := t.RequestedApplicationAdoptions() // an event reports an error
	results := b.outcomes(gatewayOf(t).NamespacedName)
	if len(requests) > 0 && len(b.accounts.managed(t.Spec.AccountID)) == 0 {
		for _, request := range applicationAdoptions.unanswered(t, results) {
			results = append(results, newApplicationResult(request, v1alpha1.AdoptionRefused, fmt.Sprintf(
				"The controller does not manage the applications of account %s: set spec.access.applications to Managed in a GatewayClass's TunnelConfiguration.", t.Spec.AccountID)))
		}
	}
	return applicationAdoptions.merge(results, recordedApplicationResults(t), requests, now)
}
