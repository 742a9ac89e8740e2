package plan

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Outcome is what happens to a request. Status or Backends is set.
type Outcome struct {
	// Status is the status in an answer without a backend; 0 if the request goes to a
	// backend.
	Status int `json:"status,omitempty"`
	// Failure is why the entry returns an error; empty if it does not.
	Failure string `json:"failure,omitempty"`
	// Location is the Location header of a redirect.
	Location string `json:"location,omitempty"`
	// RedirectLoop reports whether the Location is the URL of the request itself, and
	// the entry answers the visitor's next request too.
	RedirectLoop bool `json:"redirectLoop,omitempty"`
	// Backends are the possible backends.
	Backends []Share `json:"backends,omitempty"`
	// Changes describe how the request and the response are changed.
	Changes []string `json:"changes,omitempty"`
}

// Share is a backend and how many of the requests it gets.
type Share struct {
	// Backend is the URL of the backend, or "status 500" for a backend that does not
	// resolve.
	Backend string `json:"backend"`
	// Percent is the backend's share, rounded down.
	Percent int `json:"percent"`
	// Changes describe how requests to this backend and its responses are changed.
	Changes []string `json:"changes,omitempty"`
	// ClusterIP is the address to which Envoy connects; empty if it connects to pods.
	ClusterIP string `json:"clusterIP,omitempty"`
	// Endpoints are the Service's endpoints; nil if they were not read.
	Endpoints *envoy.EndpointAddresses `json:"endpoints,omitempty"`
}

// newOutcome returns a request's outcome. entry is nil if no entry matches.
func newOutcome(entry *routing.Entry, request routing.Request, clusterDomain string) Outcome {
	if entry == nil {
		return Outcome{Status: http.StatusNotFound}
	}
	action := entry.Action
	o := Outcome{Status: action.Status}
	if p := action.Problem; p != nil {
		o.Failure = fmt.Sprintf("%s: the rule returns %d (%s).", p.Reason, action.Status, p.Cause)
	}
	switch {
	case action.Redirect != nil:
		o.Status, o.Location = action.Redirect.Status, entry.Location(request)
	case action.Forward != nil:
		o.Backends = newShares(action.Forward.Backends, entry, request, clusterDomain)
		o.Changes = append(requestChanges(action.Forward.Filters, changedPath(entry, request), clusterDomain), policies(action.Forward)...)
	}
	o.Changes = append(o.Changes, headerChanges("response", action.Response)...)
	if action.CORS != nil {
		o.Changes = append(o.Changes, "CORS headers for "+strings.Join(action.CORS.AllowOrigins, ", "))
	}
	return o
}

// policies describes a forward's timeouts and retries.
func policies(f *routing.Forward) []string {
	var all []string
	if t := f.Timeouts; t != nil && t.Request != nil {
		all = append(all, fmt.Sprintf("request timeout %s", *t.Request))
	}
	if t := f.Timeouts; t != nil && t.Backend != nil {
		all = append(all, fmt.Sprintf("timeout of each attempt %s", *t.Backend))
	}
	if f.Retry != nil {
		all = append(all, retries(f.Retry))
	}
	return all
}

// retries describes a retry policy.
func retries(r *routing.Retry) string {
	on := "if the request did not reach the backend"
	if len(r.Codes) > 0 {
		codes := make([]string, len(r.Codes))
		for i, code := range r.Codes {
			codes[i] = strconv.Itoa(code)
		}
		on = "on " + strings.Join(codes, ", ") + ", timeouts and connection errors"
	}
	noun := "retries"
	if r.Attempts == 1 {
		noun = "retry"
	}
	return fmt.Sprintf("up to %d %s %s", r.Attempts, noun, on)
}

func newShares(backends []routing.WeightedBackend, entry *routing.Entry, request routing.Request, clusterDomain string) []Share {
	shares := make([]Share, len(backends))
	for i, b := range backends {
		shares[i] = Share{Backend: describeBackend(b, clusterDomain), Percent: percent(b.Weight, backends)}
		shares[i].Changes = append(requestChanges(b.Filters, changedPath(entry, request), clusterDomain), headerChanges("response", b.Response)...)
		if tls := b.Backend.TLS; tls != nil {
			shares[i].Changes = append(shares[i].Changes, describeTLS(tls))
		}
	}
	return shares
}

// changedPath returns a function that describes how the request's path changes.
func changedPath(entry *routing.Entry, request routing.Request) func(*routing.PathChange) string {
	return func(c *routing.PathChange) string { return "path " + c.Apply(request.Path, entry.Match.Path) }
}

// requestChanges describes how a request changes on its way to a backend.
func requestChanges(f *routing.Filters, describePath func(*routing.PathChange) string, clusterDomain string) []string {
	if f == nil {
		return nil
	}
	var changes []string
	if f.Rewrite.Hostname != "" {
		changes = append(changes, "host "+f.Rewrite.Hostname)
	}
	if f.Rewrite.Path != nil {
		changes = append(changes, describePath(f.Rewrite.Path))
	}
	changes = append(changes, headerChanges("request", f.Request)...)
	for _, m := range f.Mirrors {
		changes = append(changes, fmt.Sprintf("%d/%d of the requests mirrored to %s", m.Numerator, m.Denominator, m.Backend.Describe(clusterDomain)))
	}
	return changes
}

// headerChanges describes how the headers in a request or a response change.
func headerChanges(of string, c *routing.HeaderChanges) []string {
	if c == nil {
		return nil
	}
	var changes []string
	for _, h := range c.Set {
		changes = append(changes, fmt.Sprintf("%s header %s set to %q", of, h.Name, h.Value))
	}
	for _, h := range c.Add {
		changes = append(changes, fmt.Sprintf("%s header %s added with %q", of, h.Name, h.Value))
	}
	if len(c.Remove) > 0 {
		changes = append(changes, fmt.Sprintf("%s headers removed: %s", of, strings.Join(c.Remove, ", ")))
	}
	return changes
}
