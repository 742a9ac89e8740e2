package controller

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

var outageGateways = flag.Int("outage.gateways", 40, "number of Gateways in TestAnHourWithoutCloudflare")

const (
	// cloudflareLimit is how many requests Cloudflare permits a user in limitWindow.
	cloudflareLimit = 1200
	limitWindow     = 5 * time.Minute
	// largestBurst is how many requests the controller may send within a second.
	largestBurst = 40
	// requestsPerGateway is how many requests about a Gateway an hour without Cloudflare may
	// cause: about one a minute, apart from the first ones. Zones, applications and the inventory
	// cause requestsOfOthers.
	requestsPerGateway, requestsOfOthers = 75, 200
)

// Cloudflare fails for an hour while users change, create and delete Gateways. The requests stay
// within the limit, and each Gateway reports the failure. Afterwards everything is as the objects
// ask for, without a burst of requests.
//
// With few Gateways, their backoffs limit the requests during the outage, and with hundreds the
// API request budget does.
func TestAnHourWithoutCloudflare(t *testing.T) {
	for _, gateways := range []int{4, *outageGateways} {
		t.Run(fmt.Sprintf("%d Gateways", gateways), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newOutageHarness(t, gateways)
				h.start()
				defer h.close()
				h.converge(time.Hour)
				h.cloudflare.ResetRequests()
				h.suffer(gateways)
				most := min(gateways*requestsPerGateway+requestsOfOthers, int(time.Hour/limitWindow)*cloudflareLimit)
				if sent := h.cloudflare.Count("", ""); sent > most {
					t.Errorf("%d requests in an hour without Cloudflare, want %d at most", sent, most)
				}
				h.converge(10 * time.Minute)
				time.Sleep(limitWindow) //nolint:forbidigo // virtual time
				h.converge(0)
				h.wantRate()
			})
		})
	}
}

// suffer changes all Gateways during an hour in which Cloudflare fails in different ways.
func (h *outageHarness) suffer(gateways int) {
	h.t.Helper()
	faults := []simulator.Fault{
		{Status: http.StatusServiceUnavailable}, {Drop: simulator.DropBeforeWrite}, {Latency: time.Minute}, {Body: "<html>maintenance</html>"},
	}
	for i, fault := range faults {
		h.cloudflare.ClearFaults()
		h.cloudflare.Inject(fault)
		if i == 0 {
			h.changeAll(gateways)
		}
		time.Sleep(time.Hour / time.Duration(len(faults))) //nolint:forbidigo // virtual time
		h.wantFailures()
	}
	h.cloudflare.ClearFaults()
}

// changeAll changes the routes of all Gateways, apart from a few that it deletes and replaces by
// others.
func (h *outageHarness) changeAll(gateways int) {
	h.t.Helper()
	replaced := max(1, gateways/20)
	for i := range gateways {
		if i < replaced {
			h.deleteGateway(i)
			h.createGateway(gateways + i)
		} else {
			h.changeRoute(i, "/changed")
		}
	}
}

// converge waits until everything is as the objects ask for, and fails after the time.
func (h *outageHarness) converge(limit time.Duration) {
	h.t.Helper()
	for start := time.Now(); ; time.Sleep(15 * time.Second) { //nolint:forbidigo // virtual time
		missing := h.missing()
		if missing == "" {
			return
		}
		if time.Since(start) >= limit {
			h.t.Fatalf("after %s: %s", limit, missing)
		}
	}
}

// wantRate checks the requests against Cloudflare's limit and the burst.
func (h *outageHarness) wantRate() {
	h.t.Helper()
	requests := h.cloudflare.Requests()
	for window, most := range map[time.Duration]int{time.Second: largestBurst, limitWindow: cloudflareLimit} {
		first, maximum := 0, 0
		for i, r := range requests {
			for r.Time.Sub(requests[first].Time) >= window {
				first++
			}
			maximum = max(maximum, i-first+1)
		}
		if maximum > most {
			h.t.Errorf("%d requests within %s, want %d at most", maximum, window, most)
		}
	}
}

// wantFailures checks that each Gateway reports that Cloudflare fails.
func (h *outageHarness) wantFailures() {
	h.t.Helper()
	for _, g := range list[gatewayv1.Gateway](h, &gatewayv1.GatewayList{}) {
		c := meta.FindStatusCondition(g.Status.Conditions, "Programmed")
		if c == nil || c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, "The Cloudflare API is unavailable") {
			h.t.Errorf("Gateway %s: Programmed is %+v", g.Name, c)
		}
	}
}
