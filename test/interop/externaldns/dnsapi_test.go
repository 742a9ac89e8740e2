package externaldns

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// record is a DNS record without the fields that the specs ignore.
type record struct {
	Name, Type, Content string
	Proxied             bool
}

func (r record) String() string {
	proxied := ""
	if r.Proxied {
		proxied = " proxied"
	}
	return r.Name + " " + r.Type + " " + r.Content + proxied
}

// storedRecord is a DNS record in the API's format.
type storedRecord struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Content string `json:"content"`
	Proxied bool   `json:"proxied"`
	TTL     int    `json:"ttl"`
}

// dnsAPI simulates those requests in Cloudflare's DNS API that external-dns uses. Each
// zone's ID is its name. A CNAME cannot share its name with another record.
type dnsAPI struct {
	zones []string
	mux   *http.ServeMux

	mu      sync.Mutex
	records []storedRecord
	created int // counts all records ever created, for their IDs
	writes  int // counts requests that change records
}

func newDNSAPI(zones ...string) *dnsAPI {
	d := &dnsAPI{zones: zones, mux: http.NewServeMux()}
	const records = "/client/v4/zones/{zone}/dns_records"
	d.mux.HandleFunc("GET /client/v4/zones", d.listZones)
	d.mux.HandleFunc("GET "+records, d.listRecords)
	d.mux.HandleFunc("POST "+records+"/batch", d.applyBatch)
	// If a batch fails, external-dns retries its changes one by one.
	d.mux.HandleFunc("POST "+records, d.singleHandler(func(r storedRecord) batch { return batch{Posts: []storedRecord{r}} }))
	d.mux.HandleFunc("PUT "+records+"/{id}", d.singleHandler(func(r storedRecord) batch { return batch{Puts: []storedRecord{r}} }))
	d.mux.HandleFunc("DELETE "+records+"/{id}", d.singleHandler(func(r storedRecord) batch { return batch{Deletes: []storedRecord{r}} }))
	return d
}

func (d *dnsAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+dnsToken {
		respondError(w, http.StatusForbidden, 9109, "Unauthorized to access requested resource")
		return
	}
	d.mux.ServeHTTP(w, r)
}

func (d *dnsAPI) listZones(w http.ResponseWriter, r *http.Request) {
	all := make([]map[string]string, len(d.zones))
	for i, name := range d.zones {
		all[i] = map[string]string{"id": name, "name": name}
	}
	respondResult(w, firstPage(r, all))
}

func (d *dnsAPI) listRecords(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	outside := func(s storedRecord) bool { return !inZone(r.PathValue("zone"), s.Name) }
	respondResult(w, firstPage(r, slices.DeleteFunc(slices.Clone(d.records), outside)))
}

// inZone reports whether a record with the name belongs to the zone.
func inZone(zone, name string) bool {
	return name == zone || strings.HasSuffix(name, "."+zone)
}

// firstPage returns all items for the first page and none for the later pages.
func firstPage[T any](r *http.Request, all []T) []T {
	if p := r.URL.Query().Get("page"); p != "" && p != "1" {
		return []T{}
	}
	return append([]T{}, all...)
}

// batch is the body of a batch request, which is applied completely or not at all.
type batch struct {
	Deletes []storedRecord `json:"deletes"`
	Puts    []storedRecord `json:"puts"`
	Posts   []storedRecord `json:"posts"`
}

func (d *dnsAPI) applyBatch(w http.ResponseWriter, r *http.Request) {
	var b batch
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		respondError(w, http.StatusBadRequest, 6003, err.Error())
		return
	}
	if err := d.apply(r.PathValue("zone"), &b); err != nil {
		respondError(w, http.StatusBadRequest, 81053, err.Error())
		return
	}
	respondResult(w, b)
}

// singleHandler handles requests that change one record.
func (d *dnsAPI) singleHandler(asBatch func(storedRecord) batch) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var requested storedRecord
		if r.Method != http.MethodDelete {
			if err := json.NewDecoder(r.Body).Decode(&requested); err != nil {
				respondError(w, http.StatusBadRequest, 6003, err.Error())
				return
			}
		}
		requested.ID = r.PathValue("id")
		b := asBatch(requested)
		if err := d.apply(r.PathValue("zone"), &b); err != nil {
			respondError(w, http.StatusBadRequest, 81053, err.Error())
			return
		}
		respondResult(w, append(append(b.Deletes, b.Puts...), b.Posts...)[0])
	}
}

// apply applies the batch to the zone. Like Cloudflare, it applies first deletes,
// then puts, then posts.
func (d *dnsAPI) apply(zone string, b *batch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	for _, r := range slices.Concat(b.Puts, b.Posts) {
		if !slices.Contains(d.zones, zone) || !inZone(zone, r.Name) {
			return fmt.Errorf("%s is not in zone %s", r.Name, zone)
		}
	}
	next := slices.Clone(d.records)
	position := func(id string) int {
		return slices.IndexFunc(next, func(r storedRecord) bool { return r.ID == id })
	}
	for _, deleted := range b.Deletes {
		i := position(deleted.ID)
		if i < 0 {
			return fmt.Errorf("record %q does not exist", deleted.ID)
		}
		next = slices.Delete(next, i, i+1)
	}
	for _, changed := range b.Puts {
		i := position(changed.ID)
		if i < 0 {
			return fmt.Errorf("record %q does not exist", changed.ID)
		}
		next[i] = changed
	}
	for i := range b.Posts {
		d.created++
		b.Posts[i].ID = fmt.Sprint("record", d.created)
		next = append(next, b.Posts[i])
	}
	if err := validate(next); err != nil {
		return err
	}
	d.records = next
	return nil
}

// validate returns an error if Cloudflare would reject the combination of records.
func validate(records []storedRecord) error {
	for i, r := range records {
		if strings.Contains(strings.TrimPrefix(r.Name, "*."), "*") {
			return fmt.Errorf("%s contains a wildcard that is not its first label", r.Name)
		}
		for _, other := range records[:i] {
			if other.Name == r.Name && (other.Type == "CNAME" || r.Type == "CNAME") {
				return fmt.Errorf("an A, AAAA, or CNAME record with the host %s already exists", r.Name)
			}
		}
	}
	return nil
}

// addRecord adds a record that external-dns has not created.
func (d *dnsAPI) addRecord(r record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.created++
	d.records = append(d.records, storedRecord{
		ID: fmt.Sprint("record", d.created), Name: r.Name, Type: r.Type, Content: r.Content, Proxied: r.Proxied, TTL: 1,
	})
}

// recordsOfType returns the sorted records of the type. With the prefix "!", it returns
// all other records.
func (d *dnsAPI) recordsOfType(recordType string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := []string{}
	excluded, negated := strings.CutPrefix(recordType, "!")
	for _, r := range d.records {
		if negated && r.Type != excluded || r.Type == recordType {
			found = append(found, record{r.Name, r.Type, r.Content, r.Proxied}.String())
		}
	}
	slices.Sort(found)
	return found
}

// writeCount counts the requests that change records.
func (d *dnsAPI) writeCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writes
}

func respondResult(w http.ResponseWriter, result any) {
	respond(w, http.StatusOK, map[string]any{"success": true, "errors": []string{}, "messages": []string{}, "result": result})
}

func respondError(w http.ResponseWriter, status, code int, message string) {
	failure := map[string]any{"code": code, "message": message}
	respond(w, status, map[string]any{"success": false, "errors": []any{failure}, "messages": []string{}, "result": nil})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}
