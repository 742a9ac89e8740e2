package cloudflare

import (
	"errors"
	"sync"
	"time"
)

// outage limits how many requests with one API token wait for a response, while the API
// does not respond. Each occupies a worker until the call times out, and workers also do
// what needs no request, such as publishing routes for a Gateway with Envoy.
type outage struct {
	mu sync.Mutex
	// unanswered counts the requests since the last response that ended without one after
	// more than maxWait. waiting counts the requests in progress.
	unanswered, waiting int
}

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

// end ends a request that was sent at the given time, or not at all if it is zero.
func (o *outage) end(sent time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
	switch {
	case sent.IsZero():
	case err == nil:
		o.unanswered = 0
	case time.Since(sent) > maxWait:
		o.unanswered++
	}
}
