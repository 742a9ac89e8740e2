package gateway

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"slices"
)

// Envoy's TLS library is stricter than package x509, and Envoy rejects the clusters of all
// tenants for one certificate that the library does not read. This file checks what the
// library checks in addition. It also refuses some certificates that Envoy would read;
// authorities do not issue them.

// readCertificate returns the certificate in DER, or nil if Envoy might not read it.
func readCertificate(der []byte) *x509.Certificate {
	certificate, err := x509.ParseCertificate(der)
	if err != nil || !isStrict(certificate) {
		return nil
	}
	return certificate
}

// isStrict checks the structure of a certificate (RFC 5280, section 4.1) that package x509
// has parsed. It permits extensions only in version 3, and no unique identifiers.
func isStrict(c *x509.Certificate) bool {
	const (
		outerParts = 3 // the content, the algorithm and the signature
		parts      = 6 // from the serial number to the key
	)
	outer := partsOf(c.Raw)
	if len(outer) != outerParts || !isStrictAlgorithm(outer[1]) {
		return false
	}
	all := partsOf(c.RawTBSCertificate)
	if len(all) > 0 && isTagged(all[0], 0) {
		all = all[1:] // the version
	}
	if len(all) == parts+1 && c.Version == 3 && isTagged(all[parts], 3) && hasStrictExtensions(all[parts]) {
		all = all[:parts]
	}
	return len(all) == parts && isStrictAlgorithm(all[1]) && isStrictName(all[2]) && isStrictValidity(all[3]) &&
		isStrictName(all[4]) && isStrictKey(all[5])
}

// partsOf returns the elements in an element, or nil if there is anything else.
func partsOf(der []byte) []asn1.RawValue {
	var outer asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &outer); err != nil || len(rest) > 0 || !outer.IsCompound {
		return nil
	}
	var parts []asn1.RawValue
	for rest := outer.Bytes; len(rest) > 0; {
		var part asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &part); err != nil {
			return nil
		}
		parts = append(parts, part)
	}
	return parts
}

// isTagged reports whether the element has a tag that depends on its place.
func isTagged(e asn1.RawValue, tag int) bool {
	return e.Class == asn1.ClassContextSpecific && e.Tag == tag
}

func hasTag(e asn1.RawValue, tag int) bool { return e.Class == asn1.ClassUniversal && e.Tag == tag }

// isStrictAlgorithm permits parameters of signature algorithms only as NULL and, for
// RSASSA-PSS, as a SEQUENCE.
func isStrictAlgorithm(e asn1.RawValue) bool {
	parts := partsOf(e.FullBytes)
	switch len(parts) {
	case 1:
		return true
	case 2:
		return hasTag(parts[1], asn1.TagNull) && len(parts[1].Bytes) == 0 || hasTag(parts[1], asn1.TagSequence)
	default:
		return false
	}
}

// isStrictKey checks that nothing follows the key and the parameters of its algorithm, which
// package x509 has checked.
func isStrictKey(e asn1.RawValue) bool {
	parts := partsOf(e.FullBytes)
	return len(parts) == 2 && len(partsOf(parts[0].FullBytes)) <= 2
}

// isStrictName permits no empty part of a name, and no noncharacters of Unicode.
func isStrictName(e asn1.RawValue) bool {
	for _, relative := range partsOf(e.FullBytes) {
		attributes := partsOf(relative.FullBytes)
		if len(attributes) == 0 {
			return false
		}
		for _, attribute := range attributes {
			if parts := partsOf(attribute.FullBytes); len(parts) != 2 || slices.ContainsFunc(charactersOf(parts[1]), isNoncharacter) {
				return false
			}
		}
	}
	return true
}

// charactersOf returns the Unicode characters in a text, which package x509 has checked.
func charactersOf(e asn1.RawValue) []rune {
	switch {
	case hasTag(e, asn1.TagUTF8String):
		return []rune(string(e.Bytes))
	case hasTag(e, asn1.TagBMPString):
		var all []rune
		for pair := range slices.Chunk(e.Bytes, 2) {
			all = append(all, rune(binary.BigEndian.Uint16(pair)))
		}
		return all
	default:
		return nil
	}
}

// isNoncharacter reports whether Unicode reserves the code point for internal use.
func isNoncharacter(r rune) bool {
	return r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
}

// isStrictValidity permits only times with seconds and in UTC: "MUST be expressed in
// Greenwich Mean Time (Zulu) and MUST include seconds" (RFC 5280, section 4.1.2.5).
func isStrictValidity(e asn1.RawValue) bool {
	times := partsOf(e.FullBytes)
	return len(times) == 2 && !slices.ContainsFunc(times, func(e asn1.RawValue) bool {
		return len(e.Bytes) != len("YYMMDDHHMMSSZ") && hasTag(e, asn1.TagUTCTime) || len(e.Bytes) != len("YYYYMMDDHHMMSSZ") && hasTag(e, asn1.TagGeneralizedTime)
	})
}

// hasStrictExtensions checks that nothing follows the list of extensions, or an extension.
func hasStrictExtensions(e asn1.RawValue) bool {
	lists := partsOf(e.FullBytes)
	return len(lists) == 1 && !slices.ContainsFunc(partsOf(lists[0].FullBytes), func(extension asn1.RawValue) bool {
		parts := partsOf(extension.FullBytes)
		if len(parts) == 3 && hasTag(parts[1], asn1.TagBoolean) {
			return false // critical or not
		}
		return len(parts) != 2
	})
}
