package simulator

import (
	"net/http"
	"slices"
)

// VisitorFault makes the edge answer visitors itself, instead of sending their requests to a
// tunnel.
type VisitorFault struct {
	// Host is the hostname. An empty Host matches any.
	Host string
	// Times is how many requests the edge answers. 0 means all requests until
	// [Server.ClearVisitorFaults].
	Times int
	// Answer answers, for example [EdgeError] or [Challenge].
	Answer http.Handler
}

// InjectVisitor adds a fault. If several match a request, the first one applies.
func (s *Server) InjectVisitor(f VisitorFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visitorFaults = append(s.visitorFaults, &f)
}

// ClearVisitorFaults removes all faults.
func (s *Server) ClearVisitorFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visitorFaults = nil
}

// visitorFault returns the answer of the fault that applies to a request, or nil.
func (s *Server) visitorFault(host string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.visitorFaults, func(f *VisitorFault) bool { return f.Host == "" || f.Host == host })
	if i < 0 {
		return nil
	}
	fault := s.visitorFaults[i]
	if fault.Times--; fault.Times == 0 { // a fault without a limit starts at 0 and goes negative
		s.visitorFaults = slices.Delete(s.visitorFaults, i, i+1)
	}
	return fault.Answer
}
