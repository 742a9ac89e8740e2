package provider

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigurationJSON(t *testing.T) {
	seconds, yes := int64(5), true
	document := Configuration{
		Ingress: []IngressRule{
			{
				Hostname: "a.example.com",
				Path:     "^/api",
				Service:  "https://web:443",
				OriginRequest: OriginRequest{
					ConnectTimeout: &seconds,
					HTTP2Origin:    &yes,
					Access:         &Access{Required: true, TeamName: "team", AUDTag: []string{"tag"}},
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

	got, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON differs (-want +got):\n%s", diff)
	}
}

func TestHash(t *testing.T) {
	rules := func(service string) Configuration {
		return Configuration{Ingress: []IngressRule{{Service: service}}}
	}
	base := rules("http://a")
	withOthers := rules("http://a")
	withOthers.UnknownFields = map[string]json.RawMessage{"warp-routing": json.RawMessage(`{}`)}

	if base.Hash() != withOthers.Hash() {
		t.Error("fields that are not modelled change the hash")
	}
	if base.Hash() == rules("http://b").Hash() {
		t.Error("another service has the same hash")
	}
	if (Configuration{}).Hash() != (Configuration{Ingress: []IngressRule{}}).Hash() {
		t.Error("no rules and an empty list of rules differ")
	}
	timeout := int64(1)
	withDefaults := rules("http://a")
	withDefaults.OriginRequest.ConnectTimeout = &timeout
	if base.Hash() == withDefaults.Hash() {
		t.Error("another default has the same hash")
	}
}

// The size is that of what is sent, but for fields that are not ours.
func TestSize(t *testing.T) {
	c := Configuration{Ingress: []IngressRule{{Service: "http_status:404"}}}
	const document = `{"ingress":[{"service":"http_status:404"}]}`
	if got := c.Size(); got != len(document) {
		t.Errorf("the size of %s is said to be %d", document, got)
	}
	c.UnknownFields = map[string]json.RawMessage{"warp-routing": []byte(`{"enabled":true}`)}
	if got := c.Size(); got != len(document) {
		t.Errorf("with a field that is not ours it is %d", got)
	}
}
