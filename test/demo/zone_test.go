package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func TestRecordsLeadToTheTunnelsOfTheirGateways(t *testing.T) {
	z := newZone()
	edge := simulator.New(simulator.Options{Zones: z.database, OnCreate: z.lead})
	t.Cleanup(edge.Close)
	create := func(name, status string) string {
		request := httptest.NewRequest(http.MethodPost, "/client/v4/accounts/"+accountID+"/cfd_tunnel",
			strings.NewReader(`{"name":"`+name+`","config_src":"cloudflare"}`))
		request.Header.Set("Authorization", "Bearer any")
		edge.API().ServeHTTP(httptest.NewRecorder(), request)
		id, _ := edge.TunnelID(name)
		edge.SetConfiguration(id, []byte(`{"ingress":[{"service":"http_status:`+status+`"}]}`))
		return id
	}
	want := func(host string, want int) {
		t.Helper()
		request, answer := httptest.NewRequest(http.MethodGet, "http://"+host+"/", nil), httptest.NewRecorder()
		edge.Visitors().ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", host, answer.Code, want)
		}
	}
	want("a.example.com", 530)
	shared := create("demo.platform.shared", "201")
	create("demo.platform.envoy", "202")
	create("demo.platform.another", "203")
	for host, status := range map[string]int{
		"shared.example.com": 201, "a.b.example.com:8080": 201, envoyHostname: 202, envoyHostname + ":8080": 202,
	} {
		want(host, status)
	}

	request := httptest.NewRequest(http.MethodDelete, "/client/v4/accounts/"+accountID+"/cfd_tunnel/"+shared, nil)
	request.Header.Set("Authorization", "Bearer any")
	edge.API().ServeHTTP(httptest.NewRecorder(), request)
	want("a.example.com", 530)
	create("demo.platform.shared", "204")
	want("a.example.com", 204)
}
