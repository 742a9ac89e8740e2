package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// SecretClientCertificate is the name of the secret with the certificate that Envoy
// presents to backends. A rotation changes its content and not its name, so that Envoy
// uses the new certificate for new connections and no cluster changes.
const SecretClientCertificate = "client-certificate"

// The files with the client certificate in a [Static] configuration, which contains no
// private key.
const (
	ClientCertificateFile = "/etc/client-certificate/tls.crt"
	ClientKeyFile         = "/etc/client-certificate/tls.key"
)

// Secret is a certificate with its private key.
type Secret = tlsv3.Secret

// ClientCertificate returns the secret for a PEM certificate chain and its private key.
func ClientCertificate(chain, key []byte) *Secret {
	inline := func(content []byte) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: content}}
	}
	return newClientCertificate(inline(chain), inline(key))
}

func newClientCertificate(chain, key *corev3.DataSource) *tlsv3.Secret {
	return &tlsv3.Secret{Name: SecretClientCertificate, Type: &tlsv3.Secret_TlsCertificate{
		TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: chain, PrivateKey: key},
	}}
}

// staticClientCertificate is the secret without its content.
func staticClientCertificate() *tlsv3.Secret {
	file := func(path string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
	}
	return newClientCertificate(file(ClientCertificateFile), file(ClientKeyFile))
}

// withStaticSecrets returns a copy of a cluster with TLS that takes its secrets from the
// same configuration.
func withStaticSecrets(cluster *clusterv3.Cluster) *clusterv3.Cluster {
	var tls tlsv3.UpstreamTlsContext
	if err := cluster.TransportSocket.GetTypedConfig().UnmarshalTo(&tls); err != nil {
		panic("decode the TLS settings of a cluster: " + err.Error()) // upstreamTLS has encoded them
	}
	for _, secret := range tls.CommonTlsContext.TlsCertificateSdsSecretConfigs {
		secret.SdsConfig = nil
	}
	c := proto.CloneOf(cluster)
	c.TransportSocket.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: pack(&tls)}
	return c
}
