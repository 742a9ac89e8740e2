package xds

import (
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
)

// Responses with large resources are encoded like others.
func TestLargeResourcesAreEncoded(t *testing.T) {
	content := func(size int) *anypb.Any {
		return &anypb.Any{TypeUrl: typeURLs[routes], Value: []byte(strings.Repeat("x", size))}
	}
	response := &discoveryv3.DeltaDiscoveryResponse{
		TypeUrl: typeURLs[routes], Nonce: "7", RemovedResources: []string{"gone"},
		Resources: []*discoveryv3.Resource{{Name: "small", Version: "1", Resource: content(10)}, {Name: "large", Version: "2", Resource: content(largeResource)}},
	}
	data, err := newCodec().Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	got := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(data.Materialize(), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(response, got, protocmp.Transform()); diff != "" {
		t.Errorf("the decoded response differs (-want +got):\n%s", diff)
	}
}

// A process with little memory keeps less for each Gateway's Envoys.
func TestMemoryLimits(t *testing.T) {
	for memory, want := range map[int64]memoryLimits{
		0:         {512 << 20, 2_000_000},
		64 << 20:  {96 << 20, 500_000},
		1 << 30:   {128 << 20, 1 << 20},
		100 << 30: {512 << 20, 2_000_000},
	} {
		if got := newMemoryLimits(memory); got != want {
			t.Errorf("with a memory limit of %d, the limits are %+v, want %+v", memory, got, want)
		}
	}
}
