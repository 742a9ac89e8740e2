package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// request returns the request to adopt a record as it is now.
func (h *dnsHarness) request(id string) v1alpha1.RecordAdoption {
	h.t.Helper()
	for _, r := range h.database.Records(h.zone) {
		if r.ID == id {
			return v1alpha1.RecordAdoption{Zone: "example.com", Name: r.Name, ID: id, Type: r.Type, Content: r.Content, Requested: metav1.NewTime(h.wallTime)}
		}
	}
	h.t.Fatalf("no record %s", id)
	return v1alpha1.RecordAdoption{}
}

// adopt writes the requests to the Tunnel's annotation, as the administrator's command does.
func (h *dnsHarness) adopt(requests ...v1alpha1.RecordAdoption) {
	h.t.Helper()
	text, err := json.Marshal(requests)
	if err != nil {
		h.t.Fatal(err)
	}
	// The status has no fractions of a second, and an annotation can have them.
	h.annotateTunnel(strings.ReplaceAll(string(text), `Z"`, `.3Z"`))
}

func (h *dnsHarness) annotateTunnel(text string) {
	h.t.Helper()
	t := h.tunnelObject()
	h.change(t.Namespace, t.Name, t, func() { metav1.SetMetaDataAnnotation(&t.ObjectMeta, v1alpha1.AdoptRecordsAnnotation, text) })
	keys, err := h.zones.fromTunnel(h.t.Context(), t)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, key := range keys {
		h.dueZones[key] = h.uptime
	}
	h.changed("shared")
}

// results returns the results of adoptions in the Tunnel's status.
func (h *dnsHarness) results() (results []string) {
	h.t.Helper()
	for _, r := range recordedResults(h.tunnelObject()) {
		results = append(results, r.Name+" "+string(r.Result))
	}
	return results
}

// wantAdopted checks that the record has been adopted, and that no request is left.
func (h *dnsHarness) wantAdopted() {
	h.t.Helper()
	if diff := cmp.Diff([]string{"a.example.com Adopted"}, h.results()); diff != "" {
		h.t.Errorf("the results differ (-want +got):\n%s", diff)
	}
	if _, ok := h.tunnelObject().Annotations[v1alpha1.AdoptRecordsAnnotation]; ok {
		h.t.Error("the request remains in the annotation")
	}
	if got := h.process.dns.outcomes(h.key.NamespacedName); len(got) > 0 {
		h.t.Errorf("the process remembers %v", got)
	}
}

func TestRecordsAreAdopted(t *testing.T) {
	for name, record := range map[string]struct{ kind, content string }{
		"a record that leads here":    {"CNAME", ""},
		"a record of a load balancer": {"A", "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newDNSHarness(t)
			h.processDue() // creates the tunnel, and no zone is read yet
			content := record.content
			if content == "" {
				content = h.target()
			}
			id := h.addRecord(record.kind, content)
			h.publish()
			h.wantMetrics(map[string]float64{"dns_changes_total create success example.com": 0})
			h.adopt(h.request(id))
			h.runFor(time.Minute)
			h.wantRecords(managedRecord)
			h.wantAdopted()
			h.wantMetrics(map[string]float64{"dns_records Managed example.com": 1})

			h.runFor(23 * time.Hour)
			h.wantAdopted()
			h.runFor(2 * time.Hour)
			h.changed("shared")
			h.runFor(time.Minute)
			if got := h.results(); got != nil {
				t.Errorf("the results %v remain after a day", got)
			}
		})
	}
}

func TestRecordThatWonTheRaceForANameIsAdopted(t *testing.T) {
	h := newDNSHarness(t)
	h.runFor(10 * time.Second)
	id := h.addRecord("A", "192.0.2.1") // after the zone was read
	h.publish()
	h.wantMetrics(map[string]float64{"dns_changes_total create error example.com": 1})
	h.adopt(h.request(id))
	h.runFor(time.Minute)
	h.wantRecords(managedRecord)
	h.wantAdopted()
}

func TestChangedRecordIsNotAdopted(t *testing.T) {
	h := newDNSHarness(t)
	h.processDue() // creates the tunnel, and no zone is read yet
	id := h.addRecord("A", "192.0.2.1")
	h.publish()
	request := h.request(id)
	request.Content = "192.0.2.2"
	h.adopt(request)
	h.runFor(time.Minute)
	h.wantRecords("a.example.com A 192.0.2.1")
	if diff := cmp.Diff([]string{"a.example.com Refused"}, h.results()); diff != "" {
		t.Errorf("the results differ (-want +got):\n%s", diff)
	}
	// A new request for the same record counts again.
	h.adopt(h.request(id))
	h.runFor(time.Minute)
	h.wantRecords(managedRecord)
	h.wantAdopted()
}

func TestAdoptionSurvivesACrash(t *testing.T) {
	for name, fails := range map[string]func(write) bool{
		"between the change and the status":     func(w write) bool { return w.kind == "Tunnel" && w.subresource == "status" },
		"between the status and the annotation": func(w write) bool { return w.kind == "Tunnel" && w.verb == "update" && w.subresource == "" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newDNSHarness(t)
			h.processDue() // creates the tunnel, and no zone is read yet
			id := h.addRecord("A", "192.0.2.1")
			h.publish()
			h.adopt(h.request(id))
			for range 3 { // no Gateway is reconciled
				h.reconcileZone(zoneKey{fakeprovider.AccountID, "example.com"})
				h.advance(10 * time.Second)
			}
			h.wantRecords(managedRecord)
			crashed := false
			h.injectError = func(w write) (bool, error) {
				crashed = crashed || fails(w)
				return !crashed, errIf(crashed)
			}
			h.changed("shared")
			_, _ = h.Reconcile(t.Context(), h.key)
			if !crashed {
				t.Fatal("the process did not write what the test lets fail")
			}
			h.injectError = func(write) (bool, error) { return true, nil }
			applied := len(h.dns.Calls(fakeprovider.OpApply))
			h.restart()
			h.publish()
			h.runFor(time.Minute)
			h.wantRecords(managedRecord)
			h.wantAdopted()
			if n := len(h.dns.Calls(fakeprovider.OpApply)); n != applied {
				t.Errorf("%d more batches after the crash, want none", n-applied)
			}
		})
	}
}

func TestInvalidRequestsAreReported(t *testing.T) {
	many := "[" + strings.Repeat("{},", v1alpha1.MaxAdoptions) + "{}]"
	for name, test := range map[string]struct{ text, want string }{
		"no JSON":          {"{", "not a JSON list"},
		"too many entries": {many, "501 entries"},
		// The Tunnel's status cannot have a result for these.
		"no time":     {`[{"zone":"example.com","name":"a.example.com","id":"1","type":"A","content":"192.0.2.1"}]`, "entry 1"},
		"no name":     {`[{"zone":"example.com","id":"1","type":"A","content":"192.0.2.1","requested":"2026-01-01T00:00:00Z"}]`, "entry 1"},
		"a long name": {`[{"zone":"example.com","name":"` + strings.Repeat("a", 254) + `","id":"1","requested":"2026-01-01T00:00:00Z"}]`, "entry 1"},
		"a long zone": {`[{"zone":"` + strings.Repeat("a", 254) + `","name":"a.example.com","id":"1","requested":"2026-01-01T00:00:00Z"}]`, "entry 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newDNSHarness(t)
			h.publish()
			h.drainEvents()
			h.annotateTunnel(test.text)
			h.runFor(time.Minute)
			h.wantEvent(test.want)
			h.changed("shared")
			h.runFor(time.Minute)
			if events := h.drainEvents(); len(events) > 0 {
				t.Errorf("the events are repeated: %q", events)
			}
			if got := h.tunnelObject().Annotations[v1alpha1.AdoptRecordsAnnotation]; got != test.text {
				t.Error("the annotation was changed")
			}
			h.wantRecords(managedRecord)
		})
	}
}

func TestRequestForAZoneThatIsNotManagedIsRefused(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	request := v1alpha1.RecordAdoption{Zone: "example.net", Name: "a.example.net", ID: "1", Type: "A", Content: "192.0.2.1", Requested: metav1.NewTime(h.wallTime)}
	h.adopt(request)
	h.runFor(time.Minute)
	results := recordedResults(h.tunnelObject())
	if len(results) != 1 || results[0].Result != v1alpha1.AdoptionRefused || !strings.Contains(results[0].Message, "does not manage zone example.net") {
		t.Errorf("got the results %+v", results)
	}
	if _, ok := h.tunnelObject().Annotations[v1alpha1.AdoptRecordsAnnotation]; ok {
		t.Error("the request remains in the annotation")
	}
}

func TestNewestResultsRemain(t *testing.T) {
	now := startTime
	result := func(n int, age time.Duration) v1alpha1.RecordAdoptionResult {
		return v1alpha1.RecordAdoptionResult{Zone: "example.com", Name: fmt.Sprintf("h%d.example.com", n), Requested: metav1.NewTime(now.Add(-age))}
	}
	var recorded []v1alpha1.RecordAdoptionResult
	for n := range v1alpha1.MaxAdoptions {
		recorded = append(recorded, result(n, time.Duration(n)*time.Minute))
	}
	recorded = append(recorded, result(1000, 25*time.Hour), result(1001, 25*time.Hour))
	requests := []v1alpha1.RecordAdoption{{Zone: "example.com", Name: "h1001.example.com", Requested: metav1.NewTime(now.Add(-25 * time.Hour))}}
	got := recordAdoptions.merge([]v1alpha1.RecordAdoptionResult{result(7, 0)}, recorded[490:], requests, now)
	var names []string
	for _, r := range got {
		names = append(names, r.Name)
	}
	want := []string{"h7.example.com"}
	for n := 490; n < 500; n++ {
		want = append(want, fmt.Sprintf("h%d.example.com", n))
	}
	want = append(want, "h1001.example.com") // the annotation still has its request
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("the results differ (-want +got):\n%s", diff)
	}
	all := recordAdoptions.merge([]v1alpha1.RecordAdoptionResult{result(2000, 0)}, recorded, nil, now)
	if len(all) != v1alpha1.MaxAdoptions || all[0].Name != "h0.example.com" && all[0].Name != "h2000.example.com" || all[499].Name != "h498.example.com" {
		t.Errorf("%d results, from %s to %s", len(all), all[0].Name, all[len(all)-1].Name)
	}
}
