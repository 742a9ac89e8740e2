package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// resultLifetime is how long the Tunnel's status has the result of an adoption.
const resultLifetime = 24 * time.Hour

// maxResultMessage is the maximum size of the message in a result, in bytes.
const maxResultMessage = 2048

// answers reports whether the result is that of the request. A Tunnel's status has times
// without fractions of a second.
func answers(r v1alpha1.RecordAdoptionResult, request v1alpha1.RecordAdoption) bool {
	return r.Zone == request.Zone && r.Name == request.Name && r.Requested.Unix() == request.Requested.Unix()
}

// isAnswered reports whether the results contain that of the request.
func isAnswered(results []v1alpha1.RecordAdoptionResult, request v1alpha1.RecordAdoption) bool {
	return slices.ContainsFunc(results, func(r v1alpha1.RecordAdoptionResult) bool { return answers(r, request) })
}

// recordedResults returns the results in the Tunnel's status.
func recordedResults(t *v1alpha1.Tunnel) []v1alpha1.RecordAdoptionResult {
	if t.Status.DNS == nil {
		return nil
	}
	return t.Status.DNS.Adoptions
}

// newResult returns a result for the Tunnel's status, whose fields have limits.
func newResult(request v1alpha1.RecordAdoption, result v1alpha1.AdoptionResult, text string) v1alpha1.RecordAdoptionResult {
	return v1alpha1.RecordAdoptionResult{
		Zone: request.Zone, Name: request.Name, Requested: request.Requested.Rfc3339Copy(), Result: result, Message: message.Cut(text, maxResultMessage),
	}
}

// requestedAdoptions returns the requests for the zone that have no result yet. A Tunnel
// of another cluster, or of a newer version of the controller, requests nothing, and
// neither does a Tunnel whose Gateway was not decided about yet: the book could not
// remember the result.
func (b *dnsBook) requestedAdoptions(key zoneKey, tunnels []v1alpha1.Tunnel, o tunnel.Options) (found []dns.Adoption) {
	for i := range tunnels {
		t := &tunnels[i]
		if t.Spec.AccountID != key.account || isManagedElsewhere(t, o) || !b.has(gatewayOf(t).NamespacedName) {
			continue
		}
		requests, _ := t.RequestedAdoptions() // the Gateway's reconcile reports an error
		outcomes := b.outcomes(gatewayOf(t).NamespacedName)
		for _, request := range requests {
			if request.Zone == key.name && !isAnswered(recordedResults(t), request) && !isAnswered(outcomes, request) {
				found = append(found, dns.Adoption{RecordAdoption: request, Gateway: gatewayOf(t).NamespacedName})
			}
		}
	}
	return found
}

// has reports whether the book has the Gateway.
func (b *dnsBook) has(name types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[name] != nil
}

// outcomes returns the results of adoptions that the Tunnel's status may not have yet.
func (b *dnsBook) outcomes(name types.NamespacedName) (results []v1alpha1.RecordAdoptionResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.entries[name]
	if entry == nil {
		return nil
	}
	for _, o := range entry.outcomes {
		results = append(results, newResult(o.RecordAdoption, o.Result, o.Message))
	}
	return results
}

// adopted records the results of adoptions, for the statuses of their Tunnels.
func (b *dnsBook) adopted(outcomes []dns.AdoptionOutcome) {
	var changed []types.NamespacedName
	b.mu.Lock()
	for _, o := range outcomes {
		if entry := b.entries[o.Gateway]; entry != nil {
			entry.outcomes = append(entry.outcomes, o)
			changed = append(changed, o.Gateway)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(changed, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	b.requeueAll(slices.Compact(changed))
}

// dropOutcomes forgets the results that the Tunnel's status has.
func (b *dnsBook) dropOutcomes(name types.NamespacedName, written []v1alpha1.RecordAdoptionResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.entries[name]; entry != nil {
		entry.outcomes = slices.DeleteFunc(entry.outcomes, func(o dns.AdoptionOutcome) bool { return isAnswered(written, o.RecordAdoption) })
	}
}

// adoptionResults returns the results of adoptions for the Tunnel's status: the results that it
// has, those of this process, and a refusal of each request for a zone that is not managed.
func (b *dnsBook) adoptionResults(t *v1alpha1.Tunnel, now time.Time) []v1alpha1.RecordAdoptionResult {
	requests, _ := t.RequestedAdoptions()
	results := b.outcomes(gatewayOf(t).NamespacedName)
	for _, request := range requests {
		if mode := b.zones.modeOf(zoneKey{t.Spec.AccountID, request.Zone}); mode != v1alpha1.DNSManage && !isAnswered(recordedResults(t), request) {
			results = append(results, newResult(request, v1alpha1.AdoptionRefused,
				fmt.Sprintf("The controller does not manage zone %s of account %s: list it in spec.dns.zones of a GatewayClass's TunnelConfiguration, and set dns.mode to Manage.", request.Zone, t.Spec.AccountID)))
		}
	}
	return mergeResults(results, recordedResults(t), requests, now)
}

// mergeResults returns the newest result for each record, without results that are older
// than a day. The results of requests that the annotation still has remain.
func mergeResults(added, recorded []v1alpha1.RecordAdoptionResult, requests []v1alpha1.RecordAdoption, now time.Time) []v1alpha1.RecordAdoptionResult {
	type record struct{ zone, name string }
	seen := map[record]bool{}
	pending := func(r v1alpha1.RecordAdoptionResult) bool {
		return slices.ContainsFunc(requests, func(request v1alpha1.RecordAdoption) bool { return answers(r, request) })
	}
	var results []v1alpha1.RecordAdoptionResult
	for _, r := range slices.Concat(added, recorded) {
		if key := (record{r.Zone, r.Name}); !seen[key] && (pending(r) || now.Sub(r.Requested.Time) < resultLifetime) {
			seen[key] = true
			results = append(results, r)
		}
	}
	slices.SortStableFunc(results, func(a, b v1alpha1.RecordAdoptionResult) int { return b.Requested.Compare(a.Requested.Time) })
	return results[:min(len(results), v1alpha1.MaxAdoptions)]
}

// removeAdopted removes the requests from the Tunnel's annotation whose results are in the
// Tunnel's status. The update is based on the version that was written.
func (r *run) removeAdopted(ctx context.Context) error {
	t := r.tunnel.object
	if t == nil || isManagedElsewhere(t, r.process.options.Tunnel) {
		return nil
	}
	results := recordedResults(t)
	r.process.dns.dropOutcomes(r.key.NamespacedName, results)
	requests, err := t.RequestedAdoptions()
	r.reportInvalidAdoptions(t, err)
	remaining := slices.DeleteFunc(slices.Clone(requests), func(request v1alpha1.RecordAdoption) bool { return isAnswered(results, request) })
	if err != nil || len(remaining) == len(requests) {
		return nil
	}
	changed := t.DeepCopy()
	delete(changed.Annotations, v1alpha1.AdoptRecordsAnnotation)
	if len(remaining) > 0 {
		text, err := json.Marshal(remaining)
		if err != nil {
			return err
		}
		changed.Annotations[v1alpha1.AdoptRecordsAnnotation] = string(text)
	}
	switch err := r.process.objects.client.Update(ctx, changed); {
	case err == nil:
		r.tunnel.object = changed
	case !isStale(err):
		return fmt.Errorf("remove finished requests from Tunnel %s: %w", client.ObjectKeyFromObject(t), err)
	}
	return nil // the watch of a changed Tunnel requeues the Gateway
}

// reportInvalidAdoptions emits an event on the Tunnel if its annotation is not valid, once
// for each value.
func (r *run) reportInvalidAdoptions(t *v1alpha1.Tunnel, err error) {
	text := t.Annotations[v1alpha1.AdoptRecordsAnnotation]
	if err == nil {
		r.tunnel.invalidAdoptions = ""
		return
	}
	if hash := tokenVersion(provider.Token(text)); hash != r.tunnel.invalidAdoptions {
		r.tunnel.invalidAdoptions = hash
		r.process.notify.emitInvalidAdoptions(t, err)
	}
}
