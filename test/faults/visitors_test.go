package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// question is a request that always has the same answer.
type question struct {
	host   string
	cookie string
	want   string // the Service's name, or the status of another answer than 200
}

// visitors ask the same questions the whole time.
type visitors struct {
	handler   http.Handler
	questions []question
	cancel    context.CancelFunc
	running   sync.WaitGroup

	mu    sync.Mutex
	asked int
	slow  time.Duration // the slowest answer since the last check
	wrong []string      // since the last check
}

// startVisitors starts to ask. All hostnames are served already.
func startVisitors(w *world) *visitors {
	w.Helper()
	v := &visitors{handler: w.cloudflare.Visitors(), questions: []question{{host: "unknown.example.com", want: "530"}}}
	for plane := range planes {
		admin := hostname(plane, "admin")
		var session simulator.Session
		w.eventually("the login of "+admin, func() (missing string) {
			var err error
			session, err = w.cloudflare.Login(account, admin, "ada@example.com")
			return text(err)
		})
		v.questions = append(v.questions,
			question{hostname(plane, "open"), "", "web"}, question{hostname(plane, "team"), "", "team"},
			question{admin, "", "302"}, question{admin, session.Cookie(), "web"})
	}
	for _, q := range v.questions {
		w.eventually("the answer of "+q.host, func() string { return v.ask(q) })
	}
	ctx, cancel := context.WithCancel(context.Background())
	v.cancel = cancel
	for _, q := range v.questions {
		v.running.Go(func() { v.repeat(ctx, q) })
	}
	return v
}

// repeat asks the question ten times a second.
func (v *visitors) repeat(ctx context.Context, q question) {
	for ctx.Err() == nil {
		started := time.Now()
		wrong := v.ask(q)
		v.mu.Lock()
		v.asked++
		v.slow = max(v.slow, time.Since(started))
		if wrong != "" {
			v.wrong = append(v.wrong, started.Format("15:04:05.000 ")+wrong)
		}
		v.mu.Unlock()
		pause(ctx, 100*time.Millisecond)
	}
}

// ask returns an empty text if the answer is right.
func (v *visitors) ask(q question) (wrong string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if got := request(ctx, v.handler, q.host, "/", q.cookie); got != q.want {
		return fmt.Sprintf("%s: got %s, want %s", q.host, got, q.want)
	}
	return ""
}

// request returns the body of an answer with status 200, and the status of another.
func request(ctx context.Context, handler http.Handler, host, path, cookie string) string {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, http.NoBody)
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	if recorder.Code != http.StatusOK {
		return fmt.Sprint(recorder.Code)
	}
	return recorder.Body.String()
}

// String counts the questions.
func (v *visitors) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("visitors have asked %d times, the slowest answer took %s", v.asked, v.slow.Round(time.Millisecond))
}

// check fails if an answer since the last check was wrong.
func (v *visitors) check(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.wrong) > 0 {
		t.Errorf("%d wrong answers, the first ones: %q", len(v.wrong), v.wrong[:min(len(v.wrong), 10)])
	}
	v.wrong, v.slow = nil, 0
}

func (v *visitors) stop() {
	v.cancel()
	v.running.Wait()
}
