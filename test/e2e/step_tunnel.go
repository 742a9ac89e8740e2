package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// createTunnel creates the objects, and waits until the tunnel serves the Gateway.
func (s *scenario) createTunnel(ctx context.Context) (string, error) {
	if err := s.createObjects(ctx); err != nil {
		return "", err
	}
	err := s.awaitConditions(ctx, conditions.TypeAccepted, conditions.TypeProgrammed, conditions.TypeConnectorsReady, conditions.TypeDataPlaneReady)
	if err != nil {
		return "", err
	}
	if s.tunnel, err = s.cloud.tunnels.FindTunnel(ctx, tunnel.RemoteName(s.prefix, s.gatewayKey())); err != nil {
		return "", fmt.Errorf("find the tunnel of the Gateway at Cloudflare: %w", err)
	}
	var connectors []provider.Connector
	replicas := int(*s.settings().Connector.Replicas)
	err = s.await(ctx, "Cloudflare lists the connectors", func(ctx context.Context) error {
		connectors, err = s.cloud.tunnels.Connections(ctx, s.tunnel.ID)
		connected := slices.DeleteFunc(slices.Clone(connectors), func(c provider.Connector) bool { return !c.Connected })
		if err == nil && len(connected) < replicas {
			err = fmt.Errorf("%d of %d connectors are connected", len(connected), replicas)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("/accounts/%s/cfd_tunnel/%s", s.id, s.tunnel.ID)
	return fmt.Sprintf("%s, connectors: %d", s.tunnel.ID, len(connectors)), errors.Join(
		s.observeFields(ctx, "fields of a tunnel", path), s.observeFields(ctx, "fields of a configuration", path+"/configurations"),
		s.observeFields(ctx, "fields of connections", path+"/connections"))
}

// awaitConditions waits until the Gateway's conditions are True.
func (s *scenario) awaitConditions(ctx context.Context, types ...conditions.Type) error {
	return s.await(ctx, "the Gateway's conditions", func(ctx context.Context) error {
		gateway := &gatewayv1.Gateway{}
		if err := s.kube.Get(ctx, s.gatewayKey(), gateway); err != nil {
			return err
		}
		for _, t := range types {
			if c := t.Find(gateway.Status.Conditions); c == nil {
				return fmt.Errorf("%v is missing", t)
			} else if c.Status != metav1.ConditionTrue {
				return fmt.Errorf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
			}
		}
		return nil
	})
}

// awaitRecords waits until the records exist, and checks them at Cloudflare.
func (s *scenario) awaitRecords(ctx context.Context) (string, error) {
	if err := s.awaitConditions(ctx, conditions.TypeDNSReady); err != nil {
		return "", err
	}
	records, err := s.cloud.records(ctx, s.hosts()...)
	if err != nil {
		return "", fmt.Errorf("read the records of the hostnames: %w", err)
	}
	for _, host := range s.hosts() {
		i := slices.IndexFunc(records, func(r provider.Record) bool { return r.Name == host })
		if i < 0 {
			return "", fmt.Errorf("DNSReady is True, but %s has no record", host)
		}
		if r := records[i]; r.Type != "CNAME" || r.Content != s.tunnel.ID.Hostname() || !r.Proxied {
			return "", fmt.Errorf("%s has a record %s %s, proxied: %t; want a proxied CNAME of %s", host, r.Type, r.Content, r.Proxied, s.tunnel.ID.Hostname())
		}
	}
	zone := "/zones/" + string(s.cloud.zoneID)
	return fmt.Sprintf("%d proxied CNAME records", len(records)), errors.Join(
		s.observeFields(ctx, "fields of a zone", zone), s.observeFields(ctx, "fields of a record", zone+"/dns_records?name="+s.host(webHost)))
}

// removeGateway deletes the Gateway, and waits until the controller has removed everything at
// Cloudflare.
func (s *scenario) removeGateway(ctx context.Context) (string, error) {
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: s.gatewayKey().Namespace, Name: s.gatewayKey().Name}}
	if err := s.kube.Delete(ctx, gateway); err != nil {
		return "", fmt.Errorf("delete the Gateway: %w", err)
	}
	err := s.await(ctx, "the controller removes the tunnel and the records", func(ctx context.Context) error {
		left, err := s.cloud.find(ctx, s.prefix)
		if err == nil && !left.isEmpty() {
			err = fmt.Errorf("left are %s", strings.Join(left.names(), ", "))
		}
		return err
	})
	return "the controller has removed the tunnel and its records", err
}
