package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func TestEachHostnameLeadsToItsGatewaysTunnel(t *testing.T) {
	edge := simulator.New(simulator.Options{Dial: func(context.Context, string, string) (net.Conn, error) { panic("no rule has an origin") }})
	t.Cleanup(edge.Close)
	for gateway, status := range map[string]string{"shared": "201", "envoy": "202"} {
		request := httptest.NewRequest(http.MethodPost, "/client/v4/accounts/a/cfd_tunnel",
			strings.NewReader(`{"name":"demo.platform.`+gateway+`","config_src":"cloudflare"}`))
		request.Header.Set("Authorization", "Bearer any")
		edge.API().ServeHTTP(httptest.NewRecorder(), request)
		for _, tunnel := range edge.Tunnels() {
			if strings.HasSuffix(tunnel.Name, gateway) {
				edge.SetConfiguration(tunnel.ID, []byte(`{"ingress":[{"service":"http_status:`+status+`"}]}`))
			}
		}
	}
	for host, want := range map[string]int{
		"shared.example.com": 201, "a.example.com:8080": 201, envoyHostname: 202, envoyHostname + ":8080": 202,
	} {
		request, answer := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		request.Host = host
		hosts{edge}.ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", host, answer.Code, want)
		}
	}
}
