package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// waitForTunnels waits until both Gateways are served, and returns their tunnels' IDs.
func (s *scenario) waitForTunnels(ctx context.Context) (map[string]string, error) {
	tunnels := map[string]string{}
	for gateway := range planes {
		if err := eventually(ctx, "Gateway "+gateway, s.checkProgrammed(gateway, "True Programmed")); err != nil {
			return nil, err
		}
		if err := s.waitForRollout(ctx, connectorKey(gateway)); err != nil {
			return nil, err
		}
		g, err := s.gateway(ctx, gateway)
		if err != nil {
			return nil, err
		}
		tunnels[gateway], _, _ = strings.Cut(g.Status.Addresses[0].Value, ".")
	}
	return tunnels, nil
}

// checkProgrammed returns a check of a Gateway's condition Programmed, as "Status Reason".
func (s *scenario) checkProgrammed(name, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		g, err := s.gateway(ctx, name)
		if err != nil {
			return err
		}
		c := conditions.TypeProgrammed.Find(g.Status.Conditions)
		if c == nil || string(c.Status)+" "+c.Reason != want {
			return fmt.Errorf("the condition Programmed is %+v, want %s", c, want)
		}
		return nil
	}
}
