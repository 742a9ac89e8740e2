package cloudflare

import (
	"errors"
	"sync"
	"time"
)

// outage limits the requests with one API token that wait for an answer, while the API does
// not answer. Each of them occupies a worker until the call times out, and workers also do
// what needs no request, such as publishing the routes of a Gateway with Envoy.
type outage struct {
	mu sync.Mutex
	// unanswered is the number of requests since the last answer that ended without one after
	// more than maxWait. waiting is the number of requests in progress.
	unanswered, waiting int
}

// maxWaiting is the maximum number of requests in progress after as many unanswered ones. By
// default, there are four workers.
const maxWaiting = 2

// errUnanswered is the error of a request that is not sent.
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
