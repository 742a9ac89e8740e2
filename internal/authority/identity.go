package authority

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Identity identifies an Envoy's Tunnel in its client certificate.
type Identity struct {
	ClusterID string
	Gateway   types.NamespacedName
	Tunnel    types.UID
}

const scheme = "spiffe"

// uri returns the identity as the name in a certificate.
func (i Identity) uri() *url.URL {
	path := fmt.Sprintf("/gateway/%s/%s/tunnel/%s", i.Gateway.Namespace, i.Gateway.Name, i.Tunnel)
	return &url.URL{Scheme: scheme, Host: i.ClusterID, Path: path}
}

// parseIdentity parses the name in a certificate. It accepts only names that uri
// returns.
func parseIdentity(name *url.URL) (Identity, error) {
	parts := strings.Split(name.Path, "/")
	if len(parts) != 6 || parts[2] == "" || parts[3] == "" || parts[5] == "" || name.Host == "" {
		return Identity{}, fmt.Errorf("URI %q does not identify a Tunnel", name)
	}
	i := Identity{
		ClusterID: name.Host, Gateway: types.NamespacedName{Namespace: parts[2], Name: parts[3]}, Tunnel: types.UID(parts[5]),
	}
	if i.uri().String() != name.String() {
		return Identity{}, fmt.Errorf("URI %q does not identify a Tunnel", name)
	}
	return i, nil
}

// identityIn returns the identity in a certificate, which must have no other name.
func identityIn(c *x509.Certificate) (Identity, error) {
	if len(c.URIs) != 1 || len(c.DNSNames)+len(c.EmailAddresses)+len(c.IPAddresses) > 0 {
		return Identity{}, errors.New("the certificate must have exactly one URI and no other name")
	}
	return parseIdentity(c.URIs[0])
}

// PeerIdentity returns the identity in a connection's client certificate. It returns an
// error if the certificate has not been verified or does not identify a Tunnel.
func PeerIdentity(state tls.ConnectionState) (Identity, error) {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return Identity{}, errors.New("the client has no verified certificate")
	}
	return identityIn(state.VerifiedChains[0][0])
}

func (a *Authority) identityOf(t *v1alpha1.Tunnel) Identity {
	gateway := types.NamespacedName{Namespace: t.Spec.Gateway.Namespace, Name: t.Spec.Gateway.Name}
	return Identity{ClusterID: a.o.ClusterID, Gateway: gateway, Tunnel: t.UID}
}
