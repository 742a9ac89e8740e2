package xds

import (
	"iter"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The field numbers in a RouteConfiguration.
var (
	fieldRoutesName   = fieldOfRoutes("name")
	fieldVirtualHosts = fieldOfRoutes("virtual_hosts")
)

func fieldOfRoutes(name protoreflect.Name) protowire.Number {
	return (&routev3.RouteConfiguration{}).ProtoReflect().Descriptor().Fields().ByName(name).Number()
}

// wireField is a field in an encoded message.
type wireField struct {
	number protowire.Number
	// encoded is the whole field. content is its value if it is a text or a message.
	encoded, content []byte
}

// fieldsOf iterates over the fields of a message that [envoy.Pack] has encoded.
func fieldsOf(encoded []byte) iter.Seq[wireField] {
	return func(yield func(wireField) bool) {
		for len(encoded) > 0 {
			number, kind, n := protowire.ConsumeTag(encoded)
			size := protowire.ConsumeFieldValue(number, kind, encoded[n:])
			field := wireField{number: number, encoded: encoded[:n+size]}
			if kind == protowire.BytesType {
				field.content, _ = protowire.ConsumeBytes(encoded[n:])
			}
			if !yield(field) {
				return
			}
			encoded = encoded[n+size:]
		}
	}
}
