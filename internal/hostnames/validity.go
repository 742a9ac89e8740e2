// Package hostnames decides which hostnames are valid, and which hostnames a namespace
// may use according to its annotation.
//
// The package is pure: it uses no client, no context, no clock, no logger and no
// I/O.
package hostnames

import (
	"regexp"
	"strings"

	"golang.org/x/net/idna"
)

// syntax is the hostname pattern in the Gateway API CRDs.
var syntax = regexp.MustCompile(`^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// maxLength is the limit in the Gateway API CRDs.
const maxLength = 253

// Problem returns why a hostname is not supported although the CRDs accept it, as a
// predicate whose subject is the hostname. It returns "" for a supported hostname, which
// can be a wildcard or empty.
func Problem(hostname string) string {
	if endsInNumber(hostname) {
		return "is an IP address, or its last label is a number"
	}
	if !strings.Contains(hostname, punycodePrefix) {
		return "" // most hostnames
	}
	for label := range strings.SplitSeq(hostname, ".") {
		if strings.HasPrefix(label, punycodePrefix) && !isCanonical(label) {
			return "has a label that is not canonical punycode"
		}
	}
	return ""
}

// endsInNumber reports whether clients read the hostname as an IPv4 address, in any
// notation. ("ends-in-a-number checker", WHATWG URL Standard)
func endsInNumber(hostname string) bool {
	last := hostname[strings.LastIndexByte(hostname, '.')+1:]
	if digits, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

const punycodePrefix = "xn--"

// isCanonical reports whether an internationalized label has the form that clients send:
// it must decode to a name whose encoding is the label.
func isCanonical(label string) bool {
	decoded, err := idna.Lookup.ToUnicode(label)
	if err != nil || decoded == label {
		return false
	}
	encoded, err := idna.Lookup.ToASCII(decoded)
	return err == nil && encoded == label
}
