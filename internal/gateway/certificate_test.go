package gateway

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestInspectCertificateRefusesMoreThan64KiB(t *testing.T) {
	// Data before and after the PEM blocks counts.
	small := newRSAKey(512, 512)
	for name, test := range map[string]struct {
		key  string
		size int
		want string
	}{
		"certificate at the limit":    {corev1.TLSCertKey, 65536, ""},
		"certificate above the limit": {corev1.TLSCertKey, 65537, `has 65537 bytes of data in key "tls.crt", more than the limit of 65536 bytes`},
		"key at the limit":            {corev1.TLSPrivateKeyKey, 65536, ""},
		"key above the limit":         {corev1.TLSPrivateKeyKey, 65537, `has 65537 bytes of data in key "tls.key", more than the limit of 65536 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			secret := rsaSecret(t, small)
			secret.Data[test.key] = pad(secret.Data[test.key], test.size)
			wantProblem(t, secret, test.want)
		})
	}
}

func TestInspectCertificateRefusesLargeRSAKeys(t *testing.T) {
	const inCertificate = `has an RSA key of 16385 bits in key "tls.crt", more than the limit of 16384 bits`
	const inKey = `has an RSA key of 16385 bits in key "tls.key", more than the limit of 16384 bits`
	small, large := newRSAKey(512, 512), newRSAKey(8193, 8192)
	for name, test := range map[string]struct {
		public rsaKey
		key    []byte
		want   string
	}{
		"PKCS#1 in the certificate":  {large, small.pkcs1(t), inCertificate},
		"PKCS#1":                     {small, large.pkcs1(t), inKey},
		"PKCS#8":                     {small, large.pkcs8(t), inKey},
		"more than two primes":       {small, newRSAKey(8193, 4096, 4096).pkcs1(t), inKey},
		"without precomputed values": {small, large.withoutPrecomputed().pkcs1(t), inKey},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, tlsSecret(t, test.public.public(), test.key), test.want)
		})
	}
}

func TestInspectCertificateAcceptsKeys(t *testing.T) {
	key, large := newRSAKey(1024, 1024), newRSAKey(8192, 8192)
	elliptic, err := x509.ParsePKCS8PrivateKey(decodePEM(t, fuzzKey))
	if err != nil {
		t.Fatal(err)
	}
	public := elliptic.(crypto.Signer).Public()
	sec1, err := x509.MarshalECPrivateKey(elliptic.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	chain := tlsSecret(t, public, sec1)
	chain.Data[corev1.TLSCertKey] = append(chain.Data[corev1.TLSCertKey], rsaSecret(t, newRSAKey(8193, 8192)).Data[corev1.TLSCertKey]...)
	parameters := tlsSecret(t, public, sec1)
	parameters.Data[corev1.TLSPrivateKeyKey] = slices.Concat(encodePEM("EC PARAMETERS", []byte("ignored")), encodePEM("EC PRIVATE KEY", sec1))
	for name, secret := range map[string]*corev1.Secret{
		"RSA in PKCS#1":                       rsaSecret(t, key),
		"RSA in PKCS#8":                       tlsSecret(t, key.public(), key.pkcs8(t)),
		"RSA with the maximum size":           rsaSecret(t, large),
		"RSA with the maximum size in PKCS#8": tlsSecret(t, large.public(), large.pkcs8(t)),
		"RSA with three primes":               rsaSecret(t, newRSAKey(1024, 512, 512)),
		"RSA with primes of different sizes":  rsaSecret(t, newRSAKey(1792, 256)),
		"ECDSA in PKCS#8":                     pemSecret([]byte(fuzzCertificate), []byte(fuzzKey)),
		"ECDSA in SEC 1":                      tlsSecret(t, public, sec1),
		"ECDSA after its parameters":          parameters,
		"in a chain with a large RSA key":     chain,
		"Ed25519":                             ed25519Secret(t),
	} {
		t.Run(name, func(t *testing.T) { wantProblem(t, secret, "") })
	}
}

func TestInspectCertificateRefusesInvalidRSAKeys(t *testing.T) {
	key := newRSAKey(1024, 1024)
	change := func(f func(*rsaKey)) []byte {
		changed := key
		f(&changed)
		return changed.pkcs1(t)
	}
	for name, der := range map[string][]byte{
		"without precomputed values":     key.withoutPrecomputed().pkcs1(t),
		"without the coefficient":        change(func(k *rsaKey) { k.Qinv = nil }),
		"wrong coefficient":              change(func(k *rsaKey) { k.Qinv = one }),
		"wrong private exponent":         change(func(k *rsaKey) { k.D = new(big.Int).Add(k.D, one) }),
		"a prime of the wrong size":      change(func(k *rsaKey) { k.P = new(big.Int).Lsh(one, 300000) }),
		"zero as a prime":                change(func(k *rsaKey) { k.P = new(big.Int) }),
		"negative primes":                change(func(k *rsaKey) { k.P, k.Q = new(big.Int).Neg(k.P), new(big.Int).Neg(k.Q) }),
		"a prime too many":               change(func(k *rsaKey) { k.Version, k.Multiple = 1, []rsaMultiPrime{{big.NewInt(3), one, one}} }),
		"the key of another certificate": newRSAKey(1024, 1025).pkcs1(t),
		"data after the key":             append(key.pkcs1(t), 0),
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, tlsSecret(t, key.public(), der), unusablePair)
		})
	}
}

func wantProblem(t *testing.T, secret *corev1.Secret, want string) {
	t.Helper()
	if got := InspectCertificate(secret).Problem; got != want {
		t.Errorf("got problem %q, want %q", got, want)
	}
}

// pad returns the data with line feeds at its end, so that it has the size.
func pad(data []byte, size int) []byte {
	return append(data, bytes.Repeat([]byte("\n"), size-len(data))...)
}

// rsaKey has the fields of RSAPrivateKey in PKCS #1.
type rsaKey struct {
	Version  int
	N        *big.Int
	E        int
	D, P, Q  *big.Int
	Dp       *big.Int        `asn1:"optional"`
	Dq       *big.Int        `asn1:"optional"`
	Qinv     *big.Int        `asn1:"optional"`
	Multiple []rsaMultiPrime `asn1:"optional,omitempty"`
}

type rsaMultiPrime struct{ Prime, Exp, Coeff *big.Int }

var one = big.NewInt(1)

// newRSAKey returns a key that crypto/rsa accepts. Its factors have the given bit
// lengths, but are not primes: crypto/rsa does not check this, and finding primes this
// large takes minutes.
func newRSAKey(bits ...int) rsaKey {
	random := rand.NewChaCha8([32]byte{})
	k := rsaKey{N: big.NewInt(1), E: 65537}
	totient := big.NewInt(1)
	var factors []*big.Int
	for _, n := range bits {
		factor := newFactor(random, n, k.N)
		factors = append(factors, factor)
		k.N.Mul(k.N, factor)
		lessOne := new(big.Int).Sub(factor, one)
		totient.Mul(totient, lessOne)
	}
	k.D = new(big.Int).ModInverse(big.NewInt(int64(k.E)), totient)
	k.P, k.Q = factors[0], factors[1]
	k.Dp = new(big.Int).Mod(k.D, new(big.Int).Sub(k.P, one))
	k.Dq = new(big.Int).Mod(k.D, new(big.Int).Sub(k.Q, one))
	k.Qinv = new(big.Int).ModInverse(k.Q, k.P)
	for _, factor := range factors[2:] {
		k.Version = 1
		k.Multiple = append(k.Multiple, rsaMultiPrime{factor, one, one}) // crypto/x509 ignores the other values
	}
	return k
}

// newFactor returns an odd number that has no common factor with the product of the other
// factors, and whose predecessor has none with the public exponent.
func newFactor(random *rand.ChaCha8, bits int, product *big.Int) *big.Int {
	coprime := func(a, b *big.Int) bool { return new(big.Int).GCD(nil, nil, a, b).Cmp(one) == 0 }
	for {
		data := make([]byte, (bits+7)/8)
		_, _ = random.Read(data)
		factor := new(big.Int).SetBytes(data)
		factor.Rsh(factor, uint(len(data)*8-bits))
		factor.SetBit(factor, 0, 1).SetBit(factor, bits-1, 1).SetBit(factor, bits-2, 1)
		if coprime(factor, product) && coprime(new(big.Int).Sub(factor, one), big.NewInt(65537)) {
			return factor
		}
	}
}

func (k rsaKey) public() *rsa.PublicKey { return &rsa.PublicKey{N: k.N, E: k.E} }

func (k rsaKey) withoutPrecomputed() rsaKey {
	k.Dp, k.Dq, k.Qinv = nil, nil, nil
	return k
}

func (k rsaKey) pkcs1(t testing.TB) []byte { return marshal(t, k) }

func (k rsaKey) pkcs8(t testing.TB) []byte {
	return marshal(t, struct {
		Version    int
		Algorithm  pkix.AlgorithmIdentifier
		PrivateKey []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue}, k.pkcs1(t)})
}

func marshal(t testing.TB, value any) []byte {
	t.Helper()
	der, err := asn1.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func rsaSecret(t testing.TB, k rsaKey) *corev1.Secret { return tlsSecret(t, k.public(), k.pkcs1(t)) }

// tlsSecret returns a Secret with a certificate for the public key and with the private key
// in DER.
func tlsSecret(t testing.TB, public any, privateKey []byte) *corev1.Secret {
	t.Helper()
	template := &x509.Certificate{SerialNumber: one}
	der, err := x509.CreateCertificate(nil, template, template, public, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return pemSecret(encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", privateKey))
}

func pemSecret(certificate, privateKey []byte) *corev1.Secret {
	return &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: privateKey,
	}}
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func decodePEM(t testing.TB, data string) []byte {
	t.Helper()
	block, _ := pem.Decode([]byte(data))
	if block == nil {
		t.Fatal("no PEM data")
	}
	return block.Bytes
}

func ed25519Secret(t testing.TB) *corev1.Secret {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return tlsSecret(t, key.Public(), der)
}
