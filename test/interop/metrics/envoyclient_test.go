package metrics

import (
	"context"
	"crypto/tls"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// Resource types.
const (
	clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	routeType   = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// openRoutes names the RouteConfiguration without Access.
const openRoutes = "open"

// envoyClient is the Envoy side of a stream to the controller.
type envoyClient struct {
	connection *grpc.ClientConn
	ended      chan struct{}
	// rejectsRoutes makes the Envoy reject the routes without Access.
	rejectsRoutes atomic.Bool
}

// connectEnvoy opens a stream, and acknowledges or rejects what arrives until close.
func connectEnvoy(t *testing.T, address string, config *tls.Config, rejectsRoutes bool) *envoyClient {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	c := &envoyClient{connection: connection, ended: make(chan struct{})}
	c.rejectsRoutes.Store(rejectsRoutes)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(context.WithoutCancel(t.Context()), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []*discoveryv3.DeltaDiscoveryRequest{
		{TypeUrl: clusterType}, {TypeUrl: routeType, ResourceNamesSubscribe: []string{openRoutes, "protected"}},
	} {
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
	}
	go c.answer(stream)
	return c
}

// answer acknowledges each response until the stream ends.
func (c *envoyClient) answer(stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) {
	defer close(c.ended)
	for {
		response, err := stream.Recv()
		if err != nil {
			return
		}
		answer := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}
		if c.rejectsRoutes.Load() && len(response.GetResources()) > 0 && response.GetResources()[0].GetName() == openRoutes {
			answer.ErrorDetail = status.New(codes.InvalidArgument, "invalid path").Proto()
		}
		if err := stream.Send(answer); err != nil {
			return
		}
	}
}

// close ends the connection.
func (c *envoyClient) close() {
	_ = c.connection.Close()
	<-c.ended
}
