package envoy

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Metrics, access logs and traces name a route by its name and a backend by metadata of
// its cluster. Both are the same whether anything names them, so that no setting for
// them changes a route or a cluster.
const (
	// MetadataNamespace is the key of the metadata.
	MetadataNamespace = "tunnelgateway.dev"
	metadataBackend   = "backend"
)

// backendMetadata describes the backend of a cluster.
func backendMetadata(b routing.Backend) *corev3.Metadata {
	name := fmt.Sprintf("%s:%d", b.Service, b.ServicePort)
	if b.Import {
		name = "ServiceImport " + name
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		MetadataNamespace: {Fields: map[string]*structpb.Value{metadataBackend: structpb.NewStringValue(name)}},
	}}
}
