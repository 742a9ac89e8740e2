package gateway

import (
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"

	corev1 "k8s.io/api/core/v1"
)

// This file parses RSA keys because the standard library can take unbounded time to do
// so: crypto/x509 validates a key while it parses it, and cannot be interrupted. A limit
// on the data size is not enough. Go 1.26 computes each missing PKCS #1 value by an
// exponentiation, which takes 3.6 s for a key with 16,384 bits, and 25 s if one prime is
// almost as long as the modulus. With all values, it takes 13 ms.
// BenchmarkKeyPairWithoutChecks measures both: delete this file when the times are the
// same.

// maxRSABits is the maximum modulus size.
const maxRSABits = 16384

// rsaPrivateKey has the fields of RSAPrivateKey in PKCS #1 (RFC 8017, appendix A.1.2). It
// has the tags that crypto/x509 uses, so that both parse the same values.
type rsaPrivateKey struct {
	Version         int
	Modulus         *big.Int
	PublicExponent  int
	PrivateExponent *big.Int
	Prime1, Prime2  *big.Int
	Exponent1       *big.Int        `asn1:"optional"`
	Exponent2       *big.Int        `asn1:"optional"`
	Coefficient     *big.Int        `asn1:"optional"`
	OtherPrimes     []rsaOtherPrime `asn1:"optional,omitempty"`
}

// rsaOtherPrime has the fields of OtherPrimeInfo in PKCS #1.
type rsaOtherPrime struct {
	Prime, Exponent, Coefficient *big.Int
}

// pkcs8PrivateKey has the fields of PrivateKeyInfo in PKCS #8 (RFC 5208, section 5).
// Attributes can follow.
type pkcs8PrivateKey struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	PrivateKey []byte
}

// parseRSAKey parses an RSA private key in PKCS #1 or PKCS #8 without any validation. It
// returns nil for other data.
func parseRSAKey(der []byte) *rsaPrivateKey {
	var wrapped pkcs8PrivateKey
	if _, err := asn1.Unmarshal(der, &wrapped); err == nil {
		der = wrapped.PrivateKey
	}
	var key rsaPrivateKey
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil
	}
	return &key
}

// largeRSAKey parses the keys, but does not validate them: validation time grows with the
// square of their size.
func largeRSAKey(secret *corev1.Secret) string {
	problem := func(n *big.Int, key string) string {
		if n.BitLen() <= maxRSABits {
			return ""
		}
		return fmt.Sprintf("has an RSA key of %d bits in key %q, more than the limit of %d bits", n.BitLen(), key, maxRSABits)
	}
	if leaf, err := x509.ParseCertificate(leafDER(secret)); err == nil {
		if public, ok := leaf.PublicKey.(*rsa.PublicKey); ok {
			if p := problem(public.N, corev1.TLSCertKey); p != "" {
				return p
			}
		}
	}
	if key := parseRSAKey(privateKeyDER(secret)); key != nil {
		return problem(key.Modulus, corev1.TLSPrivateKeyKey)
	}
	return ""
}

// unusableRSAKey refuses RSA private keys that are invalid and would take crypto/rsa a
// long time: it would compute missing PKCS #1 values by an exponentiation, and its other
// calculations take time for primes that are larger than the modulus.
func unusableRSAKey(secret *corev1.Secret) string {
	key := parseRSAKey(privateKeyDER(secret))
	if key == nil {
		return ""
	}
	if key.Exponent1 == nil || key.Exponent2 == nil || key.Coefficient == nil || !key.modulusIsProduct() {
		return unusablePair
	}
	return ""
}

// modulusIsProduct reports whether the modulus is the product of the primes.
func (k *rsaPrivateKey) modulusIsProduct() bool {
	product := new(big.Int).Mul(k.Prime1, k.Prime2)
	for _, other := range k.OtherPrimes {
		if product.BitLen() > k.Modulus.BitLen() {
			return false
		}
		product.Mul(product, other.Prime)
	}
	return product.Cmp(k.Modulus) == 0
}
