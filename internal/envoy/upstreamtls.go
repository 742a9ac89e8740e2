package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// upstreamTLS returns the TLS settings for a cluster. Without a policy, Envoy verifies the
// certificate by the authorities in its image, unless the settings omit the verification.
func upstreamTLS(conn connection, policy *routing.BackendTLS) *corev3.TransportSocket {
	common := &tlsv3.CommonTlsContext{}
	if conn.http2 {
		common.AlpnProtocols = []string{"h2"}
	}
	if conn.presents {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{{Name: SecretClientCertificate, SdsConfig: adsSource()}}
	}
	switch {
	case policy != nil && policy.Authorities != "":
		validation := certificateFor(policy.Names...)
		validation.TrustedCa = &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: policy.Authorities}}
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: validation}
	case policy != nil:
		common.ValidationContextType = systemValidation(policy.Names...)
	case !conn.unverified:
		common.ValidationContextType = systemValidation(routing.CertificateName{Value: conn.serverName})
	}
	return &corev3.TransportSocket{
		Name:       transportTLS,
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(&tlsv3.UpstreamTlsContext{Sni: conn.serverName, CommonTlsContext: common})},
	}
}

// systemValidation verifies a certificate by the authorities in the Envoy image.
func systemValidation(names ...routing.CertificateName) *tlsv3.CommonTlsContext_CombinedValidationContext {
	return &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
		DefaultValidationContext:         certificateFor(names...),
		ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: secretSystemCA},
	}}
}

// certificateFor requires a certificate for one of the names. Without names, Envoy would
// accept every name.
func certificateFor(names ...routing.CertificateName) *tlsv3.CertificateValidationContext {
	context := &tlsv3.CertificateValidationContext{}
	for _, name := range names {
		kind := tlsv3.SubjectAltNameMatcher_DNS
		if name.URI {
			kind = tlsv3.SubjectAltNameMatcher_URI
		}
		context.MatchTypedSubjectAltNames = append(context.MatchTypedSubjectAltNames, &tlsv3.SubjectAltNameMatcher{
			SanType: kind, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name.Value}},
		})
	}
	return context
}
