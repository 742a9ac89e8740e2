package xds

import (
	"context"
	"net"
)

// Serve serves on a test listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return s.serve(ctx, listener)
}
