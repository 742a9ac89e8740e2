package xds

// A listener with an access log names the token bucket that limits its lines. Envoy
// subscribes to the bucket when it gets the listener, and keeps serving with the previous
// listener until the bucket arrives. A changed bucket takes effect without a change to the
// listener.
//
// The server never removes the bucket, and never sends an empty response for it: Envoy
// expects exactly one resource, and a listener that arrived without it would wait.

// lacksLimits reports whether the client subscribes to a limit in the target and has not
// acknowledged it.
func (s *session) lacksLimits() bool {
	sub := &s.types[limits]
	for name, r := range s.target.byKind[limits].each() {
		if sub.isStarted && sub.wants(name) && !sub.has(r) {
			return true
		}
	}
	return false
}
