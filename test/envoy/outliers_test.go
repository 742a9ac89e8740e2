package envoy

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// ejectionTime is how long a pod is left out, with the time until Envoy looks again.
const ejectionTime, ejectionSlack = 30 * time.Second, 3 * time.Second

// visit sends requests to a Service one after the other, which must all get the status.
func visit(t *testing.T, address, service string, n, status int) {
	t.Helper()
	for range n {
		if o := ask(t, address, service); o.status != status {
			t.Fatalf("%s: status %d, want %d; body: %s", service, o.status, status, o.body)
		}
	}
}

// TestRefusingPodsAreLeftOut shows that a pod that refused five connections gets no
// request for 30 seconds, although it accepts connections again.
func TestRefusingPodsAreLeftOut(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"web": 2, "enough": 3, "pair": 2, "only": 1})
	d["web"][0].listen(t)
	d["enough"][0].listen(t)
	address := d.serve(t, "connector: {}")
	visit(t, address, "web", 20, 200) // a retry uses the other pod
	for range 30 {
		ask(t, address, "enough") // 503 if the retry uses the other pod that refuses
	}
	visit(t, address, "pair", 30, 503)
	visit(t, address, "only", 20, 503)
	ejected := time.Now()
	for _, p := range slices.Concat(d["web"][1:], d["enough"][1:], d["pair"], d["only"]) {
		p.listen(t)
	}
	visit(t, address, "only", 1, 200) // half of one pod is none
	for _, service := range []string{"web", "enough", "pair"} {
		visit(t, address, service, 60, 200)
	}
	if n := d["web"][1].take(); n != 0 {
		t.Errorf("the pod that refused connections got %d requests", n)
	}
	for service, refused := range map[string][]*pod{"enough": d["enough"][1:], "pair": d["pair"]} {
		if a, b := refused[0].take(), refused[1].take(); (a == 0) == (b == 0) {
			t.Errorf("%s: the pods that refused connections got %d and %d requests, want 0 for one of them", service, a, b)
		}
	}
	d["web"][0].take()
	for d["web"][1].take() == 0 {
		visit(t, address, "web", 4, 200)
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // polls Envoy
		if time.Since(ejected) > ejectionTime+ejectionSlack {
			t.Fatalf("the pod is still left out %s later", time.Since(ejected))
		}
	}
	if left := time.Since(ejected); left < ejectionTime-2*time.Second {
		t.Errorf("the pod got requests again after %s, want %s", left, ejectionTime)
	}
}

// TestPodsThatDoNotAnswerAreLeftOut uses a pod whose queue for connections is full.
func TestPodsThatDoNotAnswerAreLeftOut(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"web": 2})
	d["web"][0].listen(t)
	fillQueue(t, d["web"][1])
	address := d.serve(t, "originRequest: {connectTimeout: 1s}")
	for range 3 {
		if counts := askAtOnce(t, address, "web", 12); counts[200] != 12 {
			t.Fatalf("statuses %v, want 12 times 200", counts)
		}
	}
	start := time.Now()
	visit(t, address, "web", 20, 200)
	if took := time.Since(start); took > time.Second {
		t.Errorf("20 requests took %s: Envoy still connects to the pod that does not answer", took)
	}
}

// fillQueue makes a pod's kernel ignore new connections.
func fillQueue(t *testing.T, p *pod) {
	t.Helper()
	if err := syscall.Listen(p.socket, 0); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		conn, err := net.DialTimeout("tcp", p.address, 200*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue is not full")
}

// TestStatusesNeverLeaveAPodOut shows that visitors cannot provoke it.
func TestStatusesNeverLeaveAPodOut(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"web": 3})
	for _, p := range d["web"] {
		p.listen(t)
	}
	address := d.serve(t, "connector: {}")
	for _, status := range []int{500, 502, 503, 504, 429} {
		d["web"][2].answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		d["web"][2].take()
		counts := map[int]int{}
		for range 120 {
			counts[ask(t, address, "web").status]++
		}
		if n := d["web"][2].take(); n < 30 || counts[status] != n || counts[200] != 120-n {
			t.Errorf("the pod that answers %d got %d of 120 requests, and the visitors got %v", status, n, counts)
		}
	}
}

// TestResetsDoNotLeaveAPodOut shows a limitation: Envoy counts each connection that a pod
// accepts as a success.
func TestResetsDoNotLeaveAPodOut(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"web": 2})
	d["web"][1].answerWith(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	})
	for _, p := range d["web"] {
		p.listen(t)
	}
	address := d.serve(t, "connector: {}")
	for range 60 {
		ask(t, address, "web")
	}
	if n := d["web"][1].take(); n < 20 {
		t.Errorf("the pod that resets connections got %d of 60 requests, want half of them", n)
	}
}

// TestOutlierDetectionDisabled shows that a pod gets requests as soon as it accepts
// connections again.
func TestOutlierDetectionDisabled(t *testing.T) {
	t.Parallel()
	d := deploy(t, map[string]int{"web": 2})
	d["web"][0].listen(t)
	address := d.serve(t, "connector: {envoy: {outlierDetection: Disabled}}")
	visit(t, address, "web", 40, 200)
	d["web"][1].listen(t)
	visit(t, address, "web", 20, 200)
	if n := d["web"][1].take(); n < 5 {
		t.Errorf("the pod got %s of 20 requests, want half of them", strconv.Itoa(n))
	}
}
