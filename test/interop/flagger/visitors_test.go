package flagger

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// answer is the answer to a visitor.
type answer struct {
	// text is the version that responded, or the status if it is not 200.
	text    string
	cookies []*http.Cookie
}

// visits counts all answers by their text.
type visits struct {
	mu     sync.Mutex
	counts map[string]int
}

func (v *visits) add(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.counts == nil {
		v.counts = map[string]int{}
	}
	v.counts[text]++
}

// of returns the number of answers with the texts.
func (v *visits) of(texts ...string) float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	total := 0
	for _, text := range texts {
		total += v.counts[text]
	}
	return float64(total)
}

// visit sends a request through the edge, with the cookies, and counts the answer.
func (c *canary) visit(ctx context.Context, cookies ...*http.Cookie) answer {
	a := c.send(ctx, cookies)
	c.visits.add(a.text)
	return a
}

func (c *canary) send(ctx context.Context, cookies []*http.Cookie) answer {
	id := c.tunnelID(ctx)
	if id == "" {
		return answer{text: "no tunnel"}
	}
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	request.Host = c.host
	for _, cookie := range cookies {
		request.AddCookie(cookie)
	}
	recorder := httptest.NewRecorder()
	c.edge.Tunnel(id).ServeHTTP(recorder, request)
	response := recorder.Result()
	if response.StatusCode != http.StatusOK {
		return answer{text: "status " + strconv.Itoa(response.StatusCode)}
	}
	return answer{text: recorder.Body.String(), cookies: response.Cookies()}
}

// tunnelID returns the ID of the Gateway's tunnel, or "".
func (c *canary) tunnelID(ctx context.Context) string {
	gateway := &gatewayv1.Gateway{}
	if err := c.kube.Get(ctx, client.ObjectKey{Namespace: "platform", Name: c.gateway}, gateway); err != nil || len(gateway.Status.Addresses) == 0 {
		return ""
	}
	id, _ := strings.CutSuffix(gateway.Status.Addresses[0].Value, ".cfargotunnel.com")
	return id
}

// visitors send requests one after the other until they are stopped.
type visitors struct {
	stop   context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	counts map[string]int
	failed time.Time // when a response last came from no version
}

// visitInterval is the time between two requests.
const visitInterval = 50 * time.Millisecond

// startVisitors starts visitors without cookies.
func (c *canary) startVisitors(t *testing.T) *visitors {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &visitors{stop: cancel, done: make(chan struct{}), counts: map[string]int{}}
	go func() {
		defer close(v.done)
		ticker := time.NewTicker(visitInterval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			text := c.visit(context.WithoutCancel(ctx)).text // a visitor waits for the last answer
			v.mu.Lock()
			if v.counts[text]++; strings.HasPrefix(text, "status") {
				v.failed = time.Now()
			}
			v.mu.Unlock()
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(cancel)
	return v
}

// answers counts each answer so far.
func (v *visitors) answers() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.counts)
}

// check stops the visitors, and checks that each version has responded, and nothing else
// has.
func (v *visitors) check(t *testing.T, versions ...string) {
	t.Helper()
	v.stop()
	<-v.done
	answers, total := v.answers(), 0
	for _, version := range versions {
		if answers[version] == 0 {
			t.Errorf("no visitor got version %s", version)
		}
		total += answers[version]
		delete(answers, version)
	}
	if len(answers) > 0 {
		t.Errorf("visitors also got %v, last at %s", answers, v.failed.Format(time.RFC3339Nano))
	}
	t.Logf("versions %v answered %d requests", versions, total)
}
