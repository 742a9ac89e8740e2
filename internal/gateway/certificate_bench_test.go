package gateway

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkInspectCertificate measures InspectCertificate for the inputs under the limits
// that take it the longest. Each must take less than 100 ms on a small machine with two
// cores.
func BenchmarkInspectCertificate(b *testing.B) {
	for _, inputs := range []map[string]*corev1.Secret{rsaInputs(b), keyInputs(b), certificateInputs(b), pemInputs()} {
		for _, name := range slices.Sorted(maps.Keys(inputs)) {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					InspectCertificate(inputs[name])
				}
				if tooMuchData(inputs[name]) != "" {
					b.Fatal("the input is above the limit")
				}
			})
		}
	}
}

// BenchmarkKeyPairWithoutChecks measures crypto/tls for the largest RSA keys that
// InspectCertificate accepts and refuses: it takes seconds for the second, and rsakey.go
// exists for this reason alone.
func BenchmarkKeyPairWithoutChecks(b *testing.B) {
	key := newRSAKey(8192, 8192)
	for name, secret := range map[string]*corev1.Secret{"accepted": rsaSecret(b, key), "refused": rsaSecret(b, key.withoutPrecomputed())} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
			}
		})
	}
}

// rsaInputs are RSA keys, with a certificate for them.
func rsaInputs(b *testing.B) map[string]*corev1.Secret {
	key := newRSAKey(8192, 8192)
	change := func(f func(*rsaKey)) *corev1.Secret {
		changed := key
		f(&changed)
		return rsaSecret(b, changed)
	}
	factors := slices.Repeat([]int{20}, maxRSABits/20)
	return map[string]*corev1.Secret{
		"rsa/valid":                  rsaSecret(b, key),
		"rsa/valid-pkcs8":            tlsSecret(b, key.public(), key.pkcs8(b)),
		"rsa/unequal-primes":         rsaSecret(b, newRSAKey(16320, 64)),
		"rsa/unequal-primes-swapped": rsaSecret(b, newRSAKey(64, 16320)),
		"rsa/three-primes":           rsaSecret(b, newRSAKey(5462, 5461, 5461)),
		"rsa/many-primes":            rsaSecret(b, newRSAKey(factors...)),
		"rsa/no-precomputed-values":  rsaSecret(b, key.withoutPrecomputed()),
		"rsa/wrong-coefficient":      change(func(k *rsaKey) { k.Qinv = new(big.Int).Sub(k.Qinv, one) }),
		"rsa/wrong-private-exponent": change(func(k *rsaKey) { k.D = new(big.Int).Sub(k.D, one) }),
		"rsa/large-private-exponent": change(func(k *rsaKey) { k.D = allOnes(250000) }),
		"rsa/large-prime":            change(func(k *rsaKey) { k.P = allOnes(250000) }),
		"rsa/large-primes":           change(func(k *rsaKey) { k.P, k.Q = allOnes(160000), allOnes(160000) }),
		"rsa/ones-as-primes": change(func(k *rsaKey) {
			k.Version, k.Multiple = 1, slices.Repeat([]rsaMultiPrime{{one, one, one}}, 3200)
		}),
		"rsa/large-modulus": change(func(k *rsaKey) { k.N = allOnes(270000) }),
		"rsa/large-modulus-in-certificate": tlsSecret(b, rsaKey{N: allOnes(370000), E: 65537}.public(),
			decodePEM(b, fuzzKey)),
	}
}

// keyInputs are keys other than RSA keys.
func keyInputs(b *testing.B) map[string]*corev1.Secret {
	inputs := map[string]*corev1.Secret{"key/ed25519": ed25519Secret(b)}
	for _, curve := range []elliptic.Curve{elliptic.P224(), elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		raw := bytes.Repeat([]byte{1}, (curve.Params().BitSize+7)/8)
		raw[0] = 0
		key, err := ecdsa.ParseRawPrivateKey(curve, raw)
		if err != nil {
			b.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			b.Fatal(err)
		}
		inputs["key/"+curve.Params().Name] = tlsSecret(b, key.Public(), der)
	}
	long := struct {
		Version    int
		PrivateKey []byte
		Curve      asn1.ObjectIdentifier `asn1:"explicit,tag:0"`
	}{1, make([]byte, 45000), asn1.ObjectIdentifier{1, 3, 132, 0, 35}}
	inputs["key/leading-zeros"] = pemSecret([]byte(fuzzCertificate), encodePEM("PRIVATE KEY", marshal(b, long)))
	explicit := struct {
		Version   int
		Algorithm struct {
			ID         asn1.ObjectIdentifier
			Parameters struct{ P, G *big.Int } // for a curve without a name
		}
		PrivateKey []byte
	}{}
	explicit.Algorithm.ID = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	explicit.Algorithm.Parameters.P, explicit.Algorithm.Parameters.G = allOnes(180000), allOnes(180000)
	inputs["key/explicit-curve"] = pemSecret([]byte(fuzzCertificate), encodePEM("PRIVATE KEY", marshal(b, explicit)))
	inputs["key/encrypted"] = pemSecret([]byte(fuzzCertificate), encodePEM("ENCRYPTED PRIVATE KEY", make([]byte, 48000)))
	nested := bytes.Repeat([]byte{0x30, 0x80}, 23000)
	inputs["key/nested"] = pemSecret([]byte(fuzzCertificate), encodePEM("PRIVATE KEY", nested))
	return inputs
}

// certificateInputs are certificates with many or large fields.
func certificateInputs(b *testing.B) map[string]*corev1.Secret {
	small := func(i int) string { return fmt.Sprintf("%x", i) }
	var names []string
	var extensions []pkix.Extension
	var policies []x509.OID
	var organizations []string
	for i := range 5000 {
		names = append(names, small(i))
		if i < 2000 {
			extensions = append(extensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, i}, Critical: true, Value: []byte{0}})
			if i < 1000 {
				organizations = append(organizations, small(i))
			}
		}
		if i < 4000 {
			oid, err := x509.OIDFromInts([]uint64{1, 2, uint64(i)})
			if err != nil {
				b.Fatal(err)
			}
			policies = append(policies, oid)
		}
	}
	inputs := map[string]*corev1.Secret{}
	for name, template := range map[string]*x509.Certificate{
		"names":             {DNSNames: names},
		"extensions":        {ExtraExtensions: extensions},
		"policies":          {Policies: policies},
		"subject":           {Subject: pkix.Name{Organization: organizations}},
		"name-constraints":  {PermittedDNSDomains: names[:4000]},
		"long-constraint":   {PermittedDNSDomains: []string{strings.Repeat("a.", 20000) + "a"}},
		"email-constraints": {PermittedEmailAddresses: []string{strings.Repeat("a.", 20000) + "a@a"}},
		"serial-number":     {SerialNumber: allOnes(300000)},
	} {
		if template.SerialNumber == nil {
			template.SerialNumber = one
		}
		signer := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		der, err := x509.CreateCertificate(nil, template, template, signer.Public(), signer)
		if err != nil {
			b.Fatal(err)
		}
		inputs["certificate/"+name] = pemSecret(encodePEM("CERTIFICATE", der), ed25519Secret(b).Data[corev1.TLSPrivateKeyKey])
	}
	return inputs
}

// pemInputs are encoded in PEM.
func pemInputs() map[string]*corev1.Secret {
	certificate, key := []byte(fuzzCertificate), []byte(fuzzKey)
	fill := func(prefix []byte, block, suffix string) []byte {
		n := (maxCertificateBytes - len(prefix) - len(suffix)) / len(block)
		return slices.Concat(prefix, bytes.Repeat([]byte(block), n), []byte(suffix))
	}
	return map[string]*corev1.Secret{
		"pem/chain":          pemSecret(fill(certificate, fuzzCertificate, ""), key),
		"pem/empty-blocks":   pemSecret(certificate, fill(nil, "-----BEGIN -----\n-----END -----\n", fuzzKey)),
		"pem/invalid-blocks": pemSecret(certificate, fill(nil, "-----BEGIN A-----\n-----END B-----\n", fuzzKey)),
		"pem/begin-lines":    pemSecret(certificate, fill(nil, "-----BEGIN A-----\n", fuzzKey)),
		"pem/end-lines":      pemSecret(certificate, fill(key, "\n-----END A-----", "")),
		"pem/headers":        pemSecret(certificate, fill([]byte("-----BEGIN A-----\n"), ":\n", "\n-----END A-----\n")),
		"pem/colons":         pemSecret(certificate, fill(nil, "-----BEGIN A:-----\n-----END A:-----\n", fuzzKey)),
		"pem/spaces":         pemSecret(certificate, fill([]byte("-----BEGIN A-----\n"), " ", "\n-----END A-----\n")),
		"pem/large-key":      pemSecret(certificate, fill([]byte("-----BEGIN PRIVATE KEY-----\n"), "MIIBMIIB\n", "-----END PRIVATE KEY-----\n")),
	}
}

// allOnes returns an odd number of the given size.
func allOnes(bits uint) *big.Int { return new(big.Int).Sub(new(big.Int).Lsh(one, bits), one) }
