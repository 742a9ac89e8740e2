package xds

import (
	"context"
	"net"
)

// Serve serves on a listener of the test.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener)
}
