package gateway

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"slices"
)

// Envoy's TLS library is stricter than package x509, and one certificate that it cannot read
// makes Envoy reject the clusters of all tenants. This file adds the library's checks. It
// also refuses some certificates that Envoy would read, but that authorities do not issue.

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
	return hasParts(c.Raw, func(parts []asn1.RawValue) bool {
		return len(parts) == 3 && isStrictAlgorithm(parts[1]) // the content, the algorithm and the signature
	}) && hasParts(c.RawTBSCertificate, func(parts []asn1.RawValue) bool { return isStrictContent(parts, c.Version) })
}

// isStrictContent checks what a certificate's signature covers.
func isStrictContent(parts []asn1.RawValue, version int) bool {
	if len(parts) > 0 && isTagged(parts[0], 0) {
		parts = parts[1:] // the version
	}
	const count = 6 // from the serial number to the key
	if len(parts) == count+1 && version == 3 && isTagged(parts[count], 3) && hasStrictExtensions(parts[count]) {
		parts = parts[:count]
	}
	return len(parts) == count && isStrictAlgorithm(parts[1]) && isStrictName(parts[2]) && isStrictValidity(parts[3]) &&
		isStrictName(parts[4]) && isStrictKey(parts[5])
}

// hasParts reports whether an element contains only elements that pass the check.
func hasParts(der []byte, check func([]asn1.RawValue) bool) bool {
	var outer asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &outer); err != nil || len(rest) > 0 || !outer.IsCompound {
		return false
	}
	var parts []asn1.RawValue
	for rest := outer.Bytes; len(rest) > 0; {
		var part asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &part); err != nil {
			return false
		}
		parts = append(parts, part)
	}
	return check(parts)
}

// each returns a check of all elements in an element.
func each(check func(asn1.RawValue) bool) func([]asn1.RawValue) bool {
	return func(parts []asn1.RawValue) bool {
		return !slices.ContainsFunc(parts, func(e asn1.RawValue) bool { return !check(e) })
	}
}

// isTagged reports whether the element has a tag that depends on its place.
func isTagged(e asn1.RawValue, tag int) bool {
	return e.Class == asn1.ClassContextSpecific && e.Tag == tag
}

func hasTag(e asn1.RawValue, tag int) bool { return e.Class == asn1.ClassUniversal && e.Tag == tag }

// isStrictAlgorithm permits parameters of signature algorithms only as NULL and, for
// RSASSA-PSS, as a SEQUENCE.
func isStrictAlgorithm(e asn1.RawValue) bool {
	return hasParts(e.FullBytes, func(parts []asn1.RawValue) bool {
		return len(parts) == 1 || len(parts) == 2 &&
			(hasTag(parts[1], asn1.TagNull) && len(parts[1].Bytes) == 0 || hasTag(parts[1], asn1.TagSequence))
	})
}

// isStrictKey checks that nothing follows the key and the parameters of its algorithm, which
// package x509 has checked.
func isStrictKey(e asn1.RawValue) bool {
	return hasParts(e.FullBytes, func(parts []asn1.RawValue) bool {
		return len(parts) == 2 && hasParts(parts[0].FullBytes, func(algorithm []asn1.RawValue) bool { return len(algorithm) <= 2 })
	})
}

// isStrictName permits no empty part of a name, and no noncharacters of Unicode.
func isStrictName(e asn1.RawValue) bool {
	return hasParts(e.FullBytes, each(func(relative asn1.RawValue) bool {
		return len(relative.Bytes) > 0 && hasParts(relative.FullBytes, each(func(attribute asn1.RawValue) bool {
			return hasParts(attribute.FullBytes, func(parts []asn1.RawValue) bool {
				return len(parts) == 2 && !slices.ContainsFunc(charactersOf(parts[1]), isNoncharacter)
			})
		}))
	}))
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
	return hasParts(e.FullBytes, func(times []asn1.RawValue) bool {
		return len(times) == 2 && each(func(e asn1.RawValue) bool {
			return hasTag(e, asn1.TagUTCTime) && len(e.Bytes) == len("YYMMDDHHMMSSZ") || hasTag(e, asn1.TagGeneralizedTime) && len(e.Bytes) == len("YYYYMMDDHHMMSSZ")
		})(times)
	})
}

// hasStrictExtensions checks that nothing follows the list of extensions, or an extension.
func hasStrictExtensions(e asn1.RawValue) bool {
	return hasParts(e.FullBytes, func(lists []asn1.RawValue) bool {
		return len(lists) == 1 && hasParts(lists[0].FullBytes, each(func(extension asn1.RawValue) bool {
			return hasParts(extension.FullBytes, func(parts []asn1.RawValue) bool {
				return len(parts) == 2 || len(parts) == 3 && hasTag(parts[1], asn1.TagBoolean) // critical or not
			})
		}))
	})
}
