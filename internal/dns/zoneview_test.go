package dns

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// A list of several pages can show a deleted record and the one that replaced it. The mark
// of the first does not permit changing the second.
func TestMarkOfAnotherRecord(t *testing.T) {
	o := Options{ClusterID: "prod", ClusterUID: "uid", Key: []byte("0123456789abcdef0123456789abcdef")}
	marked := provider.Record{ID: "1", Name: "www.example.com", Type: typeCNAME, Content: "a.cfargotunnel.com"}
	marked.Comment = o.mark("zone", marked.Name, marked.Content)
	other := provider.Record{ID: "2", Name: marked.Name, Type: typeCNAME, Content: "z.example.org"}
	v := newView(nil, []provider.Record{marked, other}, At(0)).verified("zone", o, false)
	set := v.set(marked.Name)
	if r, _ := set.address(); set.marked && r.ID != marked.ID {
		t.Errorf("the mark of record %s permits changing record %s", marked.ID, r.ID)
	}
}

// The previous records of a name that changes all the time are forgotten when no nameserver
// serves them.
func TestPreviousRecordsAreForgotten(t *testing.T) {
	var v *view
	for i := range 1000 {
		r := provider.Record{ID: "1", Name: "www.example.com", Type: typeCNAME, Content: []string{"a.example.org", "b.example.org"}[i%2]}
		v = newView(v, []provider.Record{r}, At(time.Duration(i)*10*time.Second))
	}
	n := 0
	for set := v.set("www.example.com").before; set != nil; set = set.before {
		n++
	}
	if n < 6 || n > 7 {
		t.Errorf("%d previous records of the last minute, want 6", n)
	}
}
