package routing

import "strings"

// Scheme is the scheme of a request as Cloudflare's edge reports it in the header
// X-Forwarded-Proto, or empty for both schemes.
type Scheme string

// The schemes that visitors can use.
const (
	SchemeHTTP  Scheme = "http"
	SchemeHTTPS Scheme = "https"
)

// ForwardedProto is the header in which Cloudflare's edge reports the scheme of a request. The
// edge overwrites it.
const ForwardedProto = "X-Forwarded-Proto"

// SchemeOf returns the scheme for a [ForwardedProto] value. A missing header and every
// value but http count as https, so that a request is never taken for an insecure one by
// mistake.
func SchemeOf(forwarded string) Scheme {
	if strings.EqualFold(forwarded, string(SchemeHTTP)) {
		return SchemeHTTP
	}
	return SchemeHTTPS
}

// Covers reports whether s includes the request scheme.
func (s Scheme) Covers(request Scheme) bool { return s == "" || s == request }

// Schemes can hold http, https or both.
type Schemes uint8

const (
	onlyHTTP Schemes = 1 << iota
	onlyHTTPS
	bothSchemes = onlyHTTP | onlyHTTPS
)

// With returns the set with another scheme, or with both for an empty one.
func (s Schemes) With(scheme Scheme) Schemes {
	switch scheme {
	case SchemeHTTP:
		return s | onlyHTTP
	case SchemeHTTPS:
		return s | onlyHTTPS
	default:
		return bothSchemes
	}
}

// Has reports whether the set contains the scheme.
func (s Schemes) Has(scheme Scheme) bool { return s.With(scheme) == s }

// HasBoth reports whether the set contains both schemes.
func (s Schemes) HasBoth() bool { return s == bothSchemes }
