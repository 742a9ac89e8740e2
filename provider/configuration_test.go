package provider

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigurationHasTheFormOfTheAPI(t *testing.T) {
	seconds, yes := int64(5), true
	configuration := Configuration{
		Ingress: []IngressRule{
			{
				Hostname: "a.example.com",
				Path:     "^/api",
				Service:  "https://web:443",
				OriginRequest: OriginRequest{
					ConnectTimeout: &seconds,
					HTTP2Origin:    &yes,
					Access:         &AccessSettings{Required: true, TeamName: "team", AUDTag: []string{"tag"}},
				},
			},
			{Service: "http_status:404"},
		},
		OriginRequest: OriginRequest{HTTPHostHeader: "internal"},
		UnknownFields: map[string]json.RawMessage{"warp-routing": json.RawMessage(`{}`)},
	}
	const want = `{"ingress":[` +
		`{"hostname":"a.example.com","path":"^/api","service":"https://web:443","originRequest":{` +
		`"connectTimeout":5,"http2Origin":true,"access":{"required":true,"teamName":"team","audTag":["tag"]}}},` +
		`{"service":"http_status:404"}],` +
		`"originRequest":{"httpHostHeader":"internal"}}`

	got, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON differs (-want +got):\n%s", diff)
	}
}

func TestHashCoversModelledFields(t *testing.T) {
	rules := func(service string) Configuration {
		return Configuration{Ingress: []IngressRule{{Service: service}}}
	}
	base := rules("http://a")
	withUnknown := rules("http://a")
	withUnknown.UnknownFields = map[string]json.RawMessage{"warp-routing": json.RawMessage(`{}`)}

	if base.Hash() != withUnknown.Hash() {
		t.Error("an unknown field changes the hash")
	}
	if base.Hash() == rules("http://b").Hash() {
		t.Error("configurations with different services have the same hash")
	}
	if (Configuration{}).Hash() != (Configuration{Ingress: []IngressRule{}}).Hash() {
		t.Error("nil rules and an empty list of rules have different hashes")
	}
	timeout := int64(1)
	withDefaults := rules("http://a")
	withDefaults.OriginRequest.ConnectTimeout = &timeout
	if base.Hash() == withDefaults.Hash() {
		t.Error("configurations with different defaults have the same hash")
	}
}

// Tunnel objects keep the hash, so each version of the controller must return the same.
func TestHashIsTheSameInEachVersion(t *testing.T) {
	c := Configuration{Ingress: []IngressRule{{Hostname: "a.example.com", Path: "^/a&b$", Service: "http://a"}, {Service: "http_status:404"}}}
	encoded := `{"ingress":[{"hostname":"a.example.com","path":"^/a\u0026b$","service":"http://a"},{"service":"http_status:404"}]}`
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(encoded))); c.Hash() != want {
		t.Errorf("the hash is %s, want that of %s, %s", c.Hash(), encoded, want)
	}
}

func TestSizeIgnoresUnknownFields(t *testing.T) {
	c := Configuration{Ingress: []IngressRule{{Service: "http_status:404"}}}
	const encoded = `{"ingress":[{"service":"http_status:404"}]}`
	if got := c.Size(); got != len(encoded) {
		t.Errorf("the size of %s is %d, want %d", encoded, got, len(encoded))
	}
	c.UnknownFields = map[string]json.RawMessage{"warp-routing": []byte(`{"enabled":true}`)}
	if got := c.Size(); got != len(encoded) {
		t.Errorf("the size with an unknown field is %d, want %d", got, len(encoded))
	}
}
