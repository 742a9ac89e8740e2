package envoy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// EncodeBootstrap returns the [Bootstrap] configuration as one line of JSON, which is the
// same for the same controller.
func EncodeBootstrap(controller string) ([]byte, error) { return encode(Bootstrap(controller)) }

// EncodeStatic returns the [Static] configuration as JSON, which an Envoy can run.
func EncodeStatic(r *Resources, a Assignments) ([]byte, error) {
	text, err := encode(Static(r, a))
	if err != nil {
		return nil, err
	}
	return indent(text)
}

// EncodeDiscovery returns the resources as JSON in the form in which xDS serves them:
// each with its name, its version and its type URL.
func EncodeDiscovery(r *Resources, a Assignments) ([]byte, error) {
	type resource struct {
		Name    string          `json:"name"`
		Version string          `json:"version"`
		TypeURL string          `json:"typeUrl"`
		Content json.RawMessage `json:"resource"`
	}
	all := struct {
		Clusters  []resource `json:"clusters"`
		Endpoints []resource `json:"endpoints"`
		Routes    []resource `json:"routes"`
		Scopes    []resource `json:"scopes"`
	}{[]resource{}, []resource{}, []resource{}, []resource{}}
	add := func(to *[]resource, name string, m proto.Message) error {
		body, version, err := Pack(m)
		if err != nil {
			return err
		}
		content, err := encode(m)
		*to = append(*to, resource{Name: name, Version: version, TypeURL: body.TypeUrl, Content: content})
		return err
	}
	for _, c := range r.Clusters {
		if err := add(&all.Clusters, c.Name, c); err != nil {
			return nil, err
		}
	}
	for _, e := range r.Endpoints {
		if err := add(&all.Endpoints, e.Cluster, a[e.Cluster]); err != nil {
			return nil, err
		}
	}
	for _, c := range r.Routes {
		if err := add(&all.Routes, c.Name, c); err != nil {
			return nil, err
		}
	}
	for _, s := range r.Scopes {
		if err := add(&all.Scopes, s.Name, s); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode resources: %w", err)
	}
	return indent(text)
}

// Pack returns deterministic bytes for a resource, and its version, which is a hash of
// them. It fails for text that is not UTF-8.
func Pack(m proto.Message) (body *anypb.Any, version string, err error) {
	body = &anypb.Any{}
	if err := anypb.MarshalFrom(body, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		return nil, "", fmt.Errorf("encode %T: %w", m, err)
	}
	sum := sha256.Sum256(body.Value)
	return body, hex.EncodeToString(sum[:]), nil
}

// encode returns the message as JSON without spaces, because protojson varies them.
func encode(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
	}
	return b.Bytes(), nil
}

func indent(text []byte) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, fmt.Errorf("indent JSON: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
