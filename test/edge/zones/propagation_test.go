package zones

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestNameserversNoticeAChangeAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, zone := newZone(Options{Delay: func() time.Duration { return time.Minute }})
		d.create(t, zone, "www A 192.0.2.1")
		if got := d.Lookup("www.example.com").Outcome; got != NoName || d.Pending() != 1 {
			t.Errorf("%s with %d pending changes, want no record and one", got, d.Pending())
		}
		<-time.After(time.Minute)
		if got := d.Lookup("www.example.com").summary(); got != "192.0.2.1" || d.Pending() != 0 {
			t.Errorf("%s with %d pending changes, want the record and none", got, d.Pending())
		}
	})
}

func TestSettleMakesAllChangesVisible(t *testing.T) {
	d, zone := newZone(Options{Delay: func() time.Duration { return time.Hour }})
	d.create(t, zone, "www A 192.0.2.1")
	id := d.Records(zone)[0].ID
	address := "192.0.2.2"
	if _, err := d.Patch(zone, id, Fields{Content: &address}); err != nil {
		t.Fatal(err)
	}
	d.Settle()
	if got := d.Lookup("www.example.com").summary(); got != address {
		t.Errorf("%s, want %s", got, address)
	}
}

// A batch that moves a name between records can show neither of them, or both.
func TestBatchPropagatesRecordByRecord(t *testing.T) {
	const limit = time.Minute
	seen := map[string]bool{}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			d, zone := newZone(Options{Delay: RandomDelay(limit)})
			d.create(t, zone, "www A 192.0.2.1")
			d.Settle()
			old := d.Records(zone)[0].ID
			if _, err := d.Apply(zone, Batch{Deletes: []Fields{{ID: old}}, Posts: []Fields{fields("www CNAME example.net")}}); err != nil {
				t.Fatal(err)
			}
			for d.Pending() > 0 {
				seen[d.Lookup("www.example.com").summary()] = true
				<-time.After(time.Second)
			}
			if got := d.Lookup("www.example.com").summary(); got != "example.net > outside: example.net" {
				t.Errorf("finally %s", got)
			}
		})
	}
	for _, want := range []string{"192.0.2.1", string(NoName), "192.0.2.1+example.net > outside: example.net"} {
		if !seen[want] {
			t.Errorf("no lookup got %q, but %v", want, seen)
		}
	}
}

func TestChangesOfOneRecordKeepTheirOrder(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- not a secret
			d, zone := newZone(Options{Delay: func() time.Duration { return time.Duration(random.IntN(60)) * time.Second }})
			d.create(t, zone, "www A 192.0.2.0")
			id := d.Records(zone)[0].ID
			d.Settle()
			for i := 1; i < 10; i++ {
				address := fmt.Sprint("192.0.2.", i)
				if _, err := d.Patch(zone, id, Fields{Content: &address}); err != nil {
					t.Fatal(err)
				}
			}
			last := "192.0.2.0"
			for d.Pending() > 0 {
				got := d.Lookup("www.example.com").summary()
				if got < last {
					t.Fatalf("%s after %s", got, last)
				}
				last = got
				<-time.After(time.Second)
			}
			if got := d.Lookup("www.example.com").summary(); got != "192.0.2.9" {
				t.Errorf("finally %s", got)
			}
		})
	}
}
