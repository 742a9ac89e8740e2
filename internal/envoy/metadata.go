package envoy

import (
	"cmp"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Access logs and traces name a route by its name and a backend by metadata of its
// cluster. Routes and clusters have both even without access logs and traces, so that these
// settings do not change them. Metrics by route take their labels from the metadata of
// counted routes.
const (
	// MetadataNamespace is the key of the metadata.
	MetadataNamespace = "tunnelgateway.dev"
	metadataBackend   = "backend"

	// The labels of a route that is counted.
	metadataRouteKind      = "route_kind"
	metadataRouteNamespace = "route_namespace"
	metadataRouteName      = "route_name"
	metadataRule           = "rule"
	metadataHostname       = "hostname"
	// metadataNoBackend is empty. A route that is not counted has it in place of the
	// cluster's metadataBackend.
	metadataNoBackend = "no_backend"
)

// backendMetadata describes the backend of a cluster.
func backendMetadata(b routing.Backend) *corev3.Metadata {
	return metadata(map[string]string{metadataBackend: b.Name().String()})
}

// routeMetadata returns the labels for the metrics of an entry's requests. They depend on
// the entry alone, because hostnames that repeat it share its routes.
func routeMetadata(e *routing.Entry, telemetry routing.Telemetry) *corev3.Metadata {
	switch {
	case !telemetry.CountsRoutes():
		return nil
	case e.Counted:
		route := e.Source.Route
		return metadata(map[string]string{
			metadataRouteKind: route.Kind, metadataRouteNamespace: route.Namespace, metadataRouteName: route.Name,
			metadataRule: strconv.Itoa(e.Source.Rule), metadataHostname: cmp.Or(e.Hostname, "*"),
		})
	case telemetry.CountsBackends():
		return notCounted
	default:
		return nil
	}
}

// notCounted is the metadata of all routes that are not counted.
var notCounted = metadata(map[string]string{metadataNoBackend: ""})

// listenerMetadata returns the labels for requests that match no route or an uncounted
// one.
func listenerMetadata(telemetry routing.Telemetry) *corev3.Metadata {
	if !telemetry.CountsRoutes() {
		return nil
	}
	return metadata(map[string]string{metadataRouteKind: other})
}

func metadata(values map[string]string) *corev3.Metadata {
	fields := make(map[string]*structpb.Value, len(values))
	for key, value := range values {
		fields[key] = structpb.NewStringValue(value)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{MetadataNamespace: {Fields: fields}}}
}
