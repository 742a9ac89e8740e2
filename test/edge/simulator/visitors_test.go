package simulator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// visit sends a request from a visitor and returns the status and the text.
func visit(t *testing.T, s *simulator.Server, host string) (status int, text string) {
	t.Helper()
	request, answer := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/", nil), httptest.NewRecorder()
	s.Visitors().ServeHTTP(answer, request)
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Code, strings.TrimSpace(string(body))
}

// newTunnelWithStatus creates a tunnel whose only rule returns the status.
func newTunnelWithStatus(t *testing.T, s *simulator.Server, c client, name, status string) string {
	t.Helper()
	id := c.create(t, name).ID
	s.SetConfiguration(id, []byte(`{"ingress":[{"service":"http_status:`+status+`"}]}`))
	return id
}

func TestVisitorsReachTheTunnelOfTheirRecord(t *testing.T) {
	s, _, c := newZoneAPI(t,
		zones.Zone{ID: "example", Name: "example.com", Account: account},
		zones.Zone{ID: "second", Name: "example.net", Account: account},
		zones.Zone{ID: "external", Name: "example.org", Account: "other"},
		zones.Zone{ID: "pending", Name: "example.edu", Account: account, Status: zones.Pending},
	)
	one := newTunnelWithStatus(t, s, c, "one", "201") + ".cfargotunnel.com"
	two := newTunnelWithStatus(t, s, c, "two", "202") + ".cfargotunnel.com"
	add := func(zone, name, target, proxied string) {
		t.Helper()
		createRecord(t, c, zone, `{"name":"`+name+`","type":"CNAME","content":"`+target+`","proxied":`+proxied+`}`)
	}
	add("example", "@", one, "true")
	add("example", "*", one, "true")
	add("example", "two", two, "true")
	add("example", "gray", one, "false")
	add("example", "outside", "origin.example.gov", "true")
	createRecord(t, c, "example", `{"name":"address","type":"A","content":"192.0.2.1","proxied":true}`)
	add("example", "gray-outside", "origin.example.gov", "false")
	add("example", "missing", "none.second.example.net", "true")
	add("example", "unknown", "00000000-0000-0000-0000-000000000000.cfargotunnel.com", "true")
	add("example", "chain", "two.example.com", "true")
	add("example", "gray-chain", "two.example.net", "false")
	add("example", "cross", "two.example.org", "true")
	add("second", "two", two, "true")
	add("external", "two", two, "true")
	add("pending", "www", one, "true")
	createRecord(t, c, "example", `{"name":"text","type":"TXT","content":"words"}`)
	createRecord(t, c, "example", `{"name":"sub","type":"NS","content":"ns1.example.gov"}`)

	for host, want := range map[string]struct {
		status int
		text   string
	}{
		"example.com":              {201, ""},
		"a.example.com":            {201, ""},
		"A.B.Example.com:8080":     {201, ""},
		"two.example.com":          {202, ""},
		"chain.example.com":        {202, ""},
		"gray-chain.example.com":   {202, ""}, // "Cloudflare will also proxy a request if a hostname on a CNAME chain is proxied."
		"text.example.com":         {530, "error code: 1016"},
		"none.example.net":         {530, "error code: 1016"},
		"missing.example.com":      {530, "error code: 1016"},
		"unknown.example.com":      {530, "error code: 1016"},
		"two.example.org":          {530, "error code: 1016"}, // a tunnel in another account
		"cross.example.com":        {403, "error code: 1014"},
		"example.gov":              {409, "error code: 1001"},
		"outside.example.com":      {530, "error code: 1016"},
		"address.example.com":      {522, "error code: 522"},
		"gray.example.com":         {502, "visitors do not reach Cloudflare: the record is not proxied, and " + one + " has no public address"},
		"gray-outside.example.com": {502, "visitors do not reach Cloudflare: the record is not proxied"},
		"x.sub.example.com":        {502, "visitors do not reach Cloudflare: NS records delegate the name"},
		"www.example.edu":          {502, "visitors do not reach Cloudflare: the zone is not active"},
	} {
		if status, text := visit(t, s, host); status != want.status || text != want.text {
			t.Errorf("%s: %d %q, want %d %q", host, status, text, want.status, want.text)
		}
	}
}

func TestVisitorsFollowTheLifeOfARecordAndItsTunnel(t *testing.T) {
	database := zones.New(zones.Options{Delay: func() time.Duration { return time.Hour }})
	zone := database.Add(zones.Zone{Name: "example.com", Account: account})
	s, c := newAPI(t, simulator.Options{Zones: database})
	want := func(status int) {
		t.Helper()
		if got, text := visit(t, s, "www.example.com"); got != status {
			t.Errorf("%d %q, want %d", got, text, status)
		}
	}
	tunnel := newTunnelWithStatus(t, s, c, "one", "201")
	record := createRecord(t, c, zone, `{"name":"www","type":"CNAME","content":"`+tunnel+`.cfargotunnel.com","proxied":true}`)
	want(530) // the nameservers do not have the record yet
	database.Settle()
	want(201)
	if err := deleteRecord(t.Context(), c, zone, record.ID); err != nil {
		t.Fatal(err)
	}
	want(201) // they still have it
	database.Settle()
	want(530)
	createRecord(t, c, zone, `{"name":"*","type":"CNAME","content":"`+tunnel+`.cfargotunnel.com","proxied":true}`)
	database.Settle()
	want(201)
	if _, err := c.delete(t.Context(), tunnel); err != nil {
		t.Fatal(err)
	}
	if status, text := visit(t, s, "www.example.com"); status != 530 || text != "error code: 1016" {
		t.Errorf("%d %q, want 530 and 1016 without the tunnel", status, text)
	}
}
