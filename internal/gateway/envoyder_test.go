package gateway_test

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The parts of an encoded TBSCertificate (RFC 5280, section 4.1).
const (
	partVersion = iota
	partSerialNumber
	partSignature
	partIssuer
	partValidity
	partSubject
	partPublicKey
	partExtensions
)

const (
	tagSequence        = 0x30
	tagSet             = 0x31
	tagUTCTime         = 0x17
	tagGeneralizedTime = 0x18
)

// element encodes an element.
func element(tag byte, parts ...[]byte) []byte {
	encoded, err := asn1.Marshal(asn1.RawValue{Class: int(tag >> 6), Tag: int(tag & 0x1f), IsCompound: tag&0x20 != 0, Bytes: bytes.Join(parts, nil)})
	if err != nil {
		panic(err)
	}
	return encoded
}

// elements returns the elements in the content of an element.
func elements(t *testing.T, der []byte) [][]byte {
	t.Helper()
	var outer, inner asn1.RawValue
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for rest := outer.Bytes; len(rest) > 0; {
		var err error
		if rest, err = asn1.Unmarshal(rest, &inner); err != nil {
			t.Fatal(err)
		}
		all = append(all, inner.FullBytes)
	}
	return all
}

// unusual are certificates that package x509 parses, and that Envoy's library rejects.
func unusual(t *testing.T) map[string][]byte {
	t.Helper()
	outer := elements(t, selfSigned(t, newKey(t), func(*x509.Certificate) {}))
	with := func(change func(p [][]byte) [][]byte) []byte {
		return element(tagSequence, element(tagSequence, change(elements(t, outer[0]))...), outer[1], outer[2])
	}
	replace := func(part int, content ...[]byte) []byte {
		return with(func(p [][]byte) [][]byte { p[part] = bytes.Join(content, nil); return p })
	}
	algorithm := func(parameters ...[]byte) []byte {
		id := element(tagSequence, append([][]byte{{6, 3, 0x2a, 3, 4}}, parameters...)...)
		p := elements(t, outer[0])
		p[partSignature] = id
		return element(tagSequence, element(tagSequence, p...), id, outer[2])
	}
	name := func(text string) []byte {
		attribute := element(tagSequence, []byte{6, 3, 0x55, 4, 3}, element(asn1.TagUTF8String, []byte(text)))
		return replace(partSubject, element(tagSequence, element(tagSet, attribute)))
	}
	validity := func(tag byte, from, to string) []byte {
		return replace(partValidity, element(tagSequence, element(tag, []byte(from)), element(tag, []byte(to))))
	}
	extension := func(more ...[]byte) []byte {
		return element(tagSequence, append([][]byte{{6, 2, 0x2a, 3}, {4, 0}}, more...)...)
	}
	null := []byte{asn1.TagNull, 0}
	key := elements(t, elements(t, outer[0])[partPublicKey])
	return map[string][]byte{
		"version 1 with extensions":           with(func(p [][]byte) [][]byte { return p[1:] }),
		"version 2 with extensions":           replace(partVersion, []byte{0xa0, 3, 2, 1, 1}),
		"a unique ID without bits":            replace(partPublicKey, elements(t, outer[0])[partPublicKey], []byte{0x81, 0}),
		"a unique ID in parts":                replace(partPublicKey, elements(t, outer[0])[partPublicKey], []byte{0xa1, 4, 3, 2, 0, 1}),
		"more after the signature":            element(tagSequence, append(outer, null)...),
		"more after the extensions":           with(func(p [][]byte) [][]byte { return append(p, null) }),
		"more in the list of extensions":      replace(partExtensions, element(0xa3, element(tagSequence, extension()), null)),
		"more in an extension":                replace(partExtensions, element(0xa3, element(tagSequence, extension(null)))),
		"more in the validity":                replace(partValidity, element(tagSequence, append(elements(t, elements(t, outer[0])[partValidity]), null)...)),
		"more in the key":                     replace(partPublicKey, element(tagSequence, append(key, null)...)),
		"more in the key's algorithm":         replace(partPublicKey, element(tagSequence, element(tagSequence, append(elements(t, key[0]), null)...), key[1])),
		"no length after the key's algorithm": replace(partPublicKey, element(tagSequence, element(tagSequence, append(elements(t, key[0]), []byte{asn1.TagNull})...), key[1])),
		"more in the algorithm":               algorithm(null, null),
		"NULL with content":                   algorithm([]byte{asn1.TagNull, 1, 0}),
		"a boolean that is not valid":         algorithm([]byte{asn1.TagBoolean, 1, 3}),
		"an integer with leading zeros":       algorithm([]byte{asn1.TagInteger, 2, 0, 1}),
		"text that is not UTF-8":              algorithm([]byte{asn1.TagUTF8String, 1, 0xff}),
		"an end of contents":                  algorithm([]byte{0, 0}),
		"a name without attributes":           replace(partSubject, element(tagSequence, element(tagSet))),
		"a name with U+FFFF":                  name("\uffff"),
		"a name with U+FDD0":                  name("\ufdd0"),
		"a name with U+10FFFE":                name("\U0010fffe"),
		"a time without seconds":              validity(tagUTCTime, "2001010000Z", "3001010000Z"),
		"a time that is not in UTC":           validity(tagGeneralizedTime, "20200101000000+0100", "20300101000000+0100"),
		"an issuer without attributes":        replace(partIssuer, element(tagSequence, element(tagSet))),
	}
}

// Envoy's library is stricter than package x509, and Envoy rejects the clusters of all tenants
// for one certificate.
func TestEnvoyAcceptsNoUnusualCertificate(t *testing.T) {
	binary := envoyBinary(t)
	for name, der := range unusual(t) {
		if _, err := x509.ParseCertificate(der); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		found := gateway.InspectCABundle(&corev1.ConfigMap{Data: map[string]string{"ca.crt": string(block(der))}})
		if found.Problem == "" {
			t.Errorf("the inspection passes %s", name)
		}
		table := resourcesWith("web", routing.BackendTLS{Hostname: "a.example.com", Authorities: string(block(der)), Names: []routing.CertificateName{{Value: "a.example.com"}}})
		if envoyProblem(t, binary, map[string]*envoy.Resources{"": table}, []string{""}) == "" {
			t.Errorf("Envoy accepts %s", name)
		}
	}
}
