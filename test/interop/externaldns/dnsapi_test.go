package externaldns

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// record is a DNS record as the dashboard shows it.
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

// storedRecord is a record as the API shows it.
type storedRecord struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Content string `json:"content"`
	Proxied bool   `json:"proxied"`
	TTL     int    `json:"ttl"`
}

// zones is Cloudflare's DNS API with some zones, whose ids are their names: the
// calls that external-dns makes, and of the rules for records that a CNAME
// tolerates none beside it.
type zones struct {
	names []string
	mux   *http.ServeMux

	mu      sync.Mutex
	records []storedRecord
	made    int // records ever, which numbers them
	writes  int // calls that wanted to change something
}

func newZones(names ...string) *zones {
	z := &zones{names: names, mux: http.NewServeMux()}
	const records = "/client/v4/zones/{zone}/dns_records"
	z.mux.HandleFunc("GET /client/v4/zones", z.listZones)
	z.mux.HandleFunc("GET "+records, z.listRecords)
	z.mux.HandleFunc("POST "+records+"/batch", z.batch)
	// One by one is how external-dns tries again when a batch fails.
	z.mux.HandleFunc("POST "+records, z.one(func(r storedRecord) change { return change{Posts: []storedRecord{r}} }))
	z.mux.HandleFunc("PUT "+records+"/{id}", z.one(func(r storedRecord) change { return change{Puts: []storedRecord{r}} }))
	z.mux.HandleFunc("DELETE "+records+"/{id}", z.one(func(r storedRecord) change { return change{Deletes: []storedRecord{r}} }))
	return z
}

func (z *zones) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+dnsToken {
		refuse(w, http.StatusForbidden, 9109, "Unauthorized to access requested resource")
		return
	}
	z.mux.ServeHTTP(w, r)
}

func (z *zones) listZones(w http.ResponseWriter, r *http.Request) {
	all := make([]map[string]string, len(z.names))
	for i, name := range z.names {
		all[i] = map[string]string{"id": name, "name": name}
	}
	answer(w, page(r, all))
}

func (z *zones) listRecords(w http.ResponseWriter, r *http.Request) {
	z.mu.Lock()
	defer z.mu.Unlock()
	outside := func(s storedRecord) bool { return !within(r.PathValue("zone"), s.Name) }
	answer(w, page(r, slices.DeleteFunc(slices.Clone(z.records), outside)))
}

// within tells whether a record of that name belongs into the zone.
func within(zone, name string) bool {
	return name == zone || strings.HasSuffix(name, "."+zone)
}

// page returns everything on the first page, and nothing on the next.
func page[T any](r *http.Request, all []T) []T {
	if p := r.URL.Query().Get("page"); p != "" && p != "1" {
		return []T{}
	}
	return append([]T{}, all...)
}

// change is the body of a batch, which happens as a whole or not at all.
type change struct {
	Deletes []storedRecord `json:"deletes"`
	Puts    []storedRecord `json:"puts"`
	Posts   []storedRecord `json:"posts"`
}

func (z *zones) batch(w http.ResponseWriter, r *http.Request) {
	var c change
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		refuse(w, http.StatusBadRequest, 6003, err.Error())
		return
	}
	if err := z.apply(r.PathValue("zone"), &c); err != nil {
		refuse(w, http.StatusBadRequest, 81053, err.Error())
		return
	}
	answer(w, c)
}

// one serves a call that changes one record.
func (z *zones) one(asChange func(storedRecord) change) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var wanted storedRecord
		if r.Method != http.MethodDelete {
			if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
				refuse(w, http.StatusBadRequest, 6003, err.Error())
				return
			}
		}
		wanted.ID = r.PathValue("id")
		c := asChange(wanted)
		if err := z.apply(r.PathValue("zone"), &c); err != nil {
			refuse(w, http.StatusBadRequest, 81053, err.Error())
			return
		}
		answer(w, append(append(c.Deletes, c.Puts...), c.Posts...)[0])
	}
}

// apply makes the change to a zone, in the order of the API: deletes, puts,
// posts.
func (z *zones) apply(zone string, c *change) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.writes++
	for _, r := range slices.Concat(c.Puts, c.Posts) {
		if !slices.Contains(z.names, zone) || !within(zone, r.Name) {
			return fmt.Errorf("%s is not in the zone %s", r.Name, zone)
		}
	}
	next := slices.Clone(z.records)
	position := func(id string) int {
		return slices.IndexFunc(next, func(r storedRecord) bool { return r.ID == id })
	}
	for _, gone := range c.Deletes {
		i := position(gone.ID)
		if i < 0 {
			return fmt.Errorf("record %q does not exist", gone.ID)
		}
		next = slices.Delete(next, i, i+1)
	}
	for _, changed := range c.Puts {
		i := position(changed.ID)
		if i < 0 {
			return fmt.Errorf("record %q does not exist", changed.ID)
		}
		next[i] = changed
	}
	for i := range c.Posts {
		z.made++
		c.Posts[i].ID = fmt.Sprint("record", z.made)
		next = append(next, c.Posts[i])
	}
	if err := valid(next); err != nil {
		return err
	}
	z.records = next
	return nil
}

func valid(records []storedRecord) error {
	for i, r := range records {
		if strings.Contains(strings.TrimPrefix(r.Name, "*."), "*") {
			return fmt.Errorf("%s has an asterisk within", r.Name)
		}
		for _, other := range records[:i] {
			if other.Name == r.Name && (other.Type == "CNAME" || r.Type == "CNAME") {
				return fmt.Errorf("an A, AAAA, or CNAME record with the host %s already exists", r.Name)
			}
		}
	}
	return nil
}

// add puts a record into its zone by hand.
func (z *zones) add(r record) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.made++
	z.records = append(z.records, storedRecord{
		ID: fmt.Sprint("record", z.made), Name: r.Name, Type: r.Type, Content: r.Content, Proxied: r.Proxied, TTL: 1,
	})
}

// list returns the records of the type, or of every other type with "!" before
// it, in order.
func (z *zones) list(kind string) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	found := []string{}
	not, excluded := strings.CutPrefix(kind, "!")
	for _, r := range z.records {
		if excluded && r.Type != not || r.Type == kind {
			found = append(found, record{r.Name, r.Type, r.Content, r.Proxied}.String())
		}
	}
	slices.Sort(found)
	return found
}

// changes returns how many calls there were that wanted to change something.
func (z *zones) changes() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.writes
}

func answer(w http.ResponseWriter, result any) {
	respond(w, http.StatusOK, map[string]any{"success": true, "errors": []string{}, "messages": []string{}, "result": result})
}

func refuse(w http.ResponseWriter, status, code int, message string) {
	failure := map[string]any{"code": code, "message": message}
	respond(w, status, map[string]any{"success": false, "errors": []any{failure}, "messages": []string{}, "result": nil})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}
