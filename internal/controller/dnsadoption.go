package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// recordAdoptions are the requests to adopt DNS records.
var recordAdoptions = adoptions[v1alpha1.RecordAdoption, v1alpha1.RecordAdoptionResult]{
	annotation: v1alpha1.AdoptRecordsAnnotation, things: "record", invalid: conditions.EventInvalidAdoptRecords,
	requests: (*v1alpha1.Tunnel).RequestedAdoptions, results: recordedResults,
	ofRequest: func(q v1alpha1.RecordAdoption) adoptionKey { return adoptionKey{q.Zone, q.Name, q.Requested} },
	ofResult:  func(r v1alpha1.RecordAdoptionResult) adoptionKey { return adoptionKey{r.Zone, r.Name, r.Requested} },
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
		for _, request := range recordAdoptions.unanswered(t, b.outcomes(gatewayOf(t).NamespacedName)) {
			if request.Zone == key.name {
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
		entry.outcomes = slices.DeleteFunc(entry.outcomes, func(o dns.AdoptionOutcome) bool { return recordAdoptions.isAnswered(written, o.RecordAdoption) })
	}
}

// adoptionResults returns the results of adoptions for the Tunnel's status: the results that it
// has, those of this process, and a refusal of each request for a zone that is not managed.
func (b *dnsBook) adoptionResults(t *v1alpha1.Tunnel, now time.Time) []v1alpha1.RecordAdoptionResult {
	requests, _ := t.RequestedAdoptions()
	results := b.outcomes(gatewayOf(t).NamespacedName)
	for _, request := range requests {
		if mode := b.zones.modeOf(zoneKey{t.Spec.AccountID, request.Zone}); mode != v1alpha1.DNSManage && !recordAdoptions.isAnswered(recordedResults(t), request) {
			results = append(results, newResult(request, v1alpha1.AdoptionRefused,
				fmt.Sprintf("The controller does not manage zone %s of account %s: list it in spec.dns.zones of a GatewayClass's TunnelConfiguration, and set dns.mode to Manage.", request.Zone, t.Spec.AccountID)))
		}
	}
	return recordAdoptions.merge(results, recordedResults(t), requests, now)
}
