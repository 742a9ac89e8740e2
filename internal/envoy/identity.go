package envoy

import (
	"encoding/json"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// The files in the identity of an Envoy, below [CertificatesPath].
const (
	// CertificateFile and KeyFile contain the client certificate and its private key, as PEM.
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
	// CAFile contains the certificate authorities that may have signed the controller
	// certificate, as PEM.
	CAFile = "ca.crt"

	sdsCertificateFile = "sds-cert.yaml"
	sdsCAFile          = "sds-ca.yaml"

	secretClient = "client"
	secretCA     = "ca"
)

// SDSFiles returns the files that lead an Envoy to the PEM files below
// [CertificatesPath], by name. Envoy reads the PEM files again when the kubelet replaces
// them.
func SDSFiles() (map[string][]byte, error) {
	watched := &corev3.WatchedDirectory{Path: CertificatesPath}
	files := map[string][]byte{}
	for name, secret := range map[string]*tlsv3.Secret{
		sdsCertificateFile: {Name: secretClient, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: certificateFile(CertificateFile), PrivateKey: certificateFile(KeyFile), WatchedDirectory: watched,
		}}},
		sdsCAFile: {Name: secretCA, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: certificateFile(CAFile), WatchedDirectory: watched,
		}}},
	} {
		resource, err := encode(pack(secret))
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(struct { // the fields of a DiscoveryResponse
			Resources []json.RawMessage `json:"resources"`
		}{[]json.RawMessage{resource}})
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		files[name] = text
	}
	return files, nil
}

func certificateFile(name string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: CertificatesPath + "/" + name}}
}
