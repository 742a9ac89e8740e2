package xds

import (
	"fmt"
	"slices"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers gRPC's codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// codec is gRPC's codec, but limits requests and does not copy large resources. Without
// the limits, a 64 MiB request could grow to gigabytes: an empty name has two bytes in
// a request and 16 in memory.
type codec struct {
	encoding.CodecV2
	// large is held while a request with many names is decoded.
	large sync.Mutex
}

func newCodec() *codec { return &codec{CodecV2: encoding.GetCodecV2("proto")} }

// The limits for one request.
const (
	// maxNamesPerRequest limits names and initial versions together.
	maxNamesPerRequest = 2 * maxNames
	// Requests with more than manyNames names are decoded one at a time.
	manyNames = 10_000
	// maxDetails limits the other fields: the node, which has 61 KB, and the error,
	// which Envoy cuts to 4 KB.
	maxDetails = 256 << 10
)

// Unmarshal implements [encoding.CodecV2].
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	if _, ok := v.(*discoveryv3.DeltaDiscoveryRequest); !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	names, err := checkRequest(whole.ReadOnlyData())
	if err != nil {
		return err
	}
	if names > manyNames {
		c.large.Lock()
		defer c.large.Unlock()
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, v)
}

// largeResource is the size from which all streams share a resource's bytes.
const largeResource = 64 << 10

// Marshal implements [encoding.CodecV2]. Each stream would otherwise keep a copy of the
// routes until its client has read them.
func (c *codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*discoveryv3.DeltaDiscoveryResponse)
	if !ok || !slices.ContainsFunc(r.Resources, isLarge) {
		return c.CodecV2.Marshal(v)
	}
	rest := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.TypeUrl, Nonce: r.Nonce, RemovedResources: r.RemovedResources}
	var large mem.BufferSlice
	for _, resource := range r.Resources {
		if isLarge(resource) {
			large = append(large, mem.SliceBuffer(encodeWithoutValue(resource)), mem.SliceBuffer(resource.Resource.Value))
		} else {
			rest.Resources = append(rest.Resources, resource)
		}
	}
	data, err := c.CodecV2.Marshal(rest)
	if err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return append(data, large...), nil
}

func isLarge(r *resource) bool { return len(r.Resource.Value) >= largeResource }

// encodeWithoutValue encodes a response's resource as far as its value, which follows.
func encodeWithoutValue(r *resource) []byte {
	const (
		resources                               = 2 // in DeltaDiscoveryResponse
		version, content, name                  = 1, 2, 3
		typeURL, value         protowire.Number = 1, 2 // in Any
	)
	field := func(to []byte, number protowire.Number, text string) []byte {
		return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), text)
	}
	size := func(to []byte, number protowire.Number, size int) []byte {
		return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.BytesType), uint64(size)) //nolint:gosec // a length
	}
	packed := size(field(nil, typeURL, r.Resource.TypeUrl), value, len(r.Resource.Value))
	packedSize := len(packed) + len(r.Resource.Value)
	head := size(field(field(nil, version, r.Version), name, r.Name), content, packedSize)
	return slices.Concat(size(nil, resources, len(head)+packedSize), head, packed)
}

// The request fields that hold names.
var (
	fieldSubscribe   = fieldOfRequest("resource_names_subscribe")
	fieldUnsubscribe = fieldOfRequest("resource_names_unsubscribe")
	fieldVersions    = fieldOfRequest("initial_resource_versions")
)

func fieldOfRequest(name protoreflect.Name) protowire.Number {
	return (&discoveryv3.DeltaDiscoveryRequest{}).ProtoReflect().Descriptor().Fields().ByName(name).Number()
}

// checkRequest counts the names in an encoded request. It returns an error if the
// request exceeds a limit.
func checkRequest(encoded []byte) (names int, err error) {
	details := 0
	for len(encoded) > 0 {
		number, kind, n := protowire.ConsumeTag(encoded)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, encoded[n:])
		if size < 0 {
			return 0, protowire.ParseError(size)
		}
		switch number {
		case fieldSubscribe, fieldUnsubscribe, fieldVersions:
			names++
		default:
			details += n + size
		}
		encoded = encoded[n+size:]
	}
	switch {
	case names > maxNamesPerRequest:
		return 0, fmt.Errorf("%d names, the maximum is %d", names, maxNamesPerRequest)
	case details > maxDetails:
		return 0, fmt.Errorf("%d bytes beside names, the maximum is %d", details, maxDetails)
	}
	return names, nil
}
