package cloudflare

import (
	"errors"
	"sync"
	"time"
)

// outage limits the requests with one API token while the API fails.
//
// It limits how many wait for a response while the API does not respond. Each occupies a worker
// until the call times out, and workers also do what needs no request, such as publishing routes
// for a Gateway with Envoy.
//
// It also limits the retries. With hundreds of Gateways, the retries of the first calls would use
// up the API request budget, and the first calls of the others would wait for half an hour.
type outage struct {
	mu sync.Mutex
	// unanswered counts the requests since the last response that ended without one after
	// more than maxWait. waiting counts the requests in progress.
	unanswered, waiting int
	// failed counts the attempts since the last one that did not fail.
	failed int
}

// maxFailed is after how many failed attempts a call makes only one attempt. A call makes about
// five in [maxWait], and by default there are four workers.
const maxFailed = 20

// After maxWaiting unanswered requests, at most maxWaiting requests are in progress. By
// default, there are four workers.
const maxWaiting = 2

// errUnanswered is returned for a request that is not sent.
var errUnanswered = errors.New("not sent, because the Cloudflare API has not answered the last requests")

// begin counts a request, or returns an error if it must not be sent now.
func (o *outage) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unanswered >= maxWaiting && o.waiting >= maxWaiting {
		return errUnanswered
	}
	o.waiting++
	return nil
}

// permitsRetries reports whether a call may repeat a failed attempt.
func (o *outage) permitsRetries() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed < maxFailed
}

// end ends a request that was sent at the given time, or not at all if it is zero. It failed
// because of the error, or because of its response.
func (o *outage) end(sent time.Time, failed bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
	if sent.IsZero() {
		return
	}
	if o.failed++; !failed {
		o.failed = 0
	}
	switch {
	case err == nil:
		o.unanswered = 0
	case time.Since(sent) > maxWait:
		o.unanswered++
	}
}
