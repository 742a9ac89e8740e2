package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	preservecasev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/header_formatters/preserve_case/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	// maxHeadersKiB and maxHeaders limit request and response headers.
	maxHeadersKiB = 128
	maxHeaders    = 1000
)

// secretSystemCA is the static secret in the bootstrap with the certificate authorities
// in the Envoy image.
const secretSystemCA = "system-ca"

func (c *clusters) protocolOptions(o httpOptions) map[string]*anypb.Any {
	if known, ok := c.options[o]; ok {
		return known
	}
	options := &httpv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout: durationpb.New(o.idleTimeout), MaxHeadersCount: wrapperspb.UInt32(maxHeaders), MaxResponseHeadersKb: wrapperspb.UInt32(maxHeadersKiB),
		},
	}
	explicit := &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: http1Options()},
	}
	if o.http2 {
		explicit.ProtocolConfig = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}}
	}
	options.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit}
	c.options[o] = map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(options)}
	return c.options[o]
}

// http1Options keep trailers and the case of header names.
func http1Options() *corev3.Http1ProtocolOptions {
	return &corev3.Http1ProtocolOptions{
		EnableTrailers: true,
		HeaderKeyFormat: &corev3.Http1ProtocolOptions_HeaderKeyFormat{
			HeaderFormat: &corev3.Http1ProtocolOptions_HeaderKeyFormat_StatefulFormatter{StatefulFormatter: &corev3.TypedExtensionConfig{
				Name: "preserve_case", TypedConfig: pack(&preservecasev3.PreserveCaseFormatterConfig{}),
			}},
		},
	}
}

// transportTLS is the name of the transport socket for TLS.
const transportTLS = "envoy.transport_sockets.tls"

// adsSource gets resources from the controller. Envoy waits for them without a time
// limit.
func adsSource() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		InitialFetchTimeout:   durationpb.New(0),
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

func boolValue(b bool) *wrapperspb.BoolValue { return wrapperspb.Bool(b) }
