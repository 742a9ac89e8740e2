package gateway

import (
	"crypto/tls"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// validPath is the CRD pattern for literal paths.
var validPath = regexp.MustCompile(`^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$`)

func isValidPath(value string) bool {
	return validPath.MatchString(value) && strings.HasPrefix(value, "/") &&
		!strings.Contains(value, "//") && !strings.Contains(strings.ToLower(value), "%2f")
}

func FuzzPath(f *testing.F) {
	exact, prefix, expression := string(gatewayv1.PathMatchExact), string(gatewayv1.PathMatchPathPrefix), string(gatewayv1.PathMatchRegularExpression)
	f.Add(exact, "/c%2Bd", "/c+d")
	f.Add(exact, "/a.b", "/a\n")
	f.Add(prefix, "/foo/", "/foo")
	f.Add(prefix, "/foo", "/foobar")
	f.Add(prefix, "/%FF", "/")
	f.Add(expression, "/a|/b", "/bc")
	f.Add(expression, "/a)|(/b", "/b")
	f.Add(expression, "(?m)^/a$", "/a\n/b")
	f.Add(expression, `\Q/a.b`, "/a.b")
	f.Add("Glob", "/a*", "/ab")
	f.Fuzz(func(t *testing.T, kind, value, path string) {
		pathType := gatewayv1.PathMatchType(kind)
		literal := pathType == gatewayv1.PathMatchExact || pathType == gatewayv1.PathMatchPathPrefix
		match, _, err := translator{capabilities: ingress.Capabilities()}.path(&gatewayv1.HTTPPathMatch{Type: &pathType, Value: &value}, nil)
		if literal && !isValidPath(value) || len(value) > 100 {
			return // a longer expression can exceed the limit
		}
		supported, matches := referencePathMatch(pathType, value, path)
		if (err == nil) != supported {
			t.Fatalf("path(%s %q) returns the error %v, want an error: %t", kind, value, err, !supported)
		}
		if err != nil {
			return
		}
		compiled, err := regexp.Compile(expressionOf(match))
		if err != nil {
			t.Fatalf("path(%s %q) returns an invalid expression: %v", kind, value, err)
		}
		// RE2 replaces invalid bytes with U+FFFD, so paths with such bytes are ignored.
		if got := match.Matches(path); got != compiled.MatchString(path) {
			t.Errorf("%s %q: the table matches %q: %t, and the ingress rule does not agree", kind, value, path, got)
		} else if got != matches && utf8.ValidString(path) {
			t.Errorf("path(%s %q) matches %q: %t, want %t", kind, value, path, got, matches)
		}
	})
}

// expressionOf returns the path in the ingress rule for a path match.
func expressionOf(p routing.Path) string {
	entry := routing.Entry{Match: &routing.Match{Path: p}, Action: &routing.Action{Status: 200}, Source: routing.Source{Route: &routing.Route{}}}
	return ingress.Rules(&routing.Table{Groups: []routing.Group{{Entries: []*routing.Entry{new(entry)}}}})[0].Path
}

// referencePathMatch implements the path types a second time. It returns whether an
// ingress rule can express the match, and whether the match matches the path.
func referencePathMatch(kind gatewayv1.PathMatchType, value, path string) (supported, matches bool) {
	if kind == gatewayv1.PathMatchRegularExpression {
		compiled, err := regexp.Compile(value)
		if err != nil {
			return false, false
		}
		compiled.Longest()
		location := compiled.FindStringIndex(path)
		return true, location != nil && location[0] == 0 && location[1] == len(path)
	}
	literal, err := url.PathUnescape(value)
	if err != nil || !utf8.ValidString(literal) {
		return false, false
	}
	switch kind {
	case gatewayv1.PathMatchExact:
		return true, path == literal
	case gatewayv1.PathMatchPathPrefix:
		literal = strings.TrimSuffix(literal, "/")
		return true, literal == "" || path == literal || strings.HasPrefix(path, literal+"/")
	default:
		return false, false
	}
}

// A key pair for tests. The key is public and protects nothing.
const (
	fuzzCertificate = `-----BEGIN CERTIFICATE-----
MIIBJTCBzaADAgECAgEBMAoGCCqGSM49BAMCMBwxGjAYBgNVBAMTEXZhbGlkLmV4
YW1wbGUuY29tMCAXDTI1MDEwMTAwMDAwMFoYDzIxMjUwMTAxMDAwMDAwWjAcMRow
GAYDVQQDExF2YWxpZC5leGFtcGxlLmNvbTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABGolRONpA7DI9VJAsa0/aftCydiS97jQfkdCa9Q8zA6ctY/330sggwrvxmQz
k2CNgGq3nqD1AfjiD1r2EZYeCNgwCgYIKoZIzj0EAwIDRwAwRAIgd6uOEC0hrC1q
VF0Ry0h7sj5SBblHyoxXEe2N/0lrfQECIAm0rA1YubQxlLKc17wP/bgj2jz/DDgw
PVGCWrpGcEhA
-----END CERTIFICATE-----
`
	fuzzKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDlP1w4s2jFW/qz6W
nLyDmoPi7S8I2/ViFqoe6iw7JLihRANCAARqJUTjaQOwyPVSQLGtP2n7QsnYkve4
0H5HQmvUPMwOnLWP999LIIMK78ZkM5NgjYBqt56g9QH44g9a9hGWHgjY
-----END PRIVATE KEY-----
`
)

func FuzzInspectCertificate(f *testing.F) {
	certificate, key := []byte(fuzzCertificate), []byte(fuzzKey)
	f.Add(certificate, key)
	f.Add(append(certificate, certificate...), key)
	f.Add(certificate[:len(certificate)/2], key)
	f.Add(certificate, key[:len(key)-30])
	f.Add(key, certificate)
	for _, k := range []rsaKey{newRSAKey(512, 512), newRSAKey(512, 256, 256)} {
		secret := rsaSecret(f, k)
		f.Add(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	}
	f.Add([]byte("garbage"), []byte("garbage"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		found := InspectCertificate(&corev1.Secret{
			Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		})
		pair, err := tls.X509KeyPair(certificate, key)
		if found.Problem != "" {
			if !found.NotAfter.IsZero() {
				t.Errorf("got problem %q and expiration time %s, want no time", found.Problem, found.NotAfter)
			}
			return
		}
		if err != nil {
			t.Fatalf("found no problem, but crypto/tls rejects the pair: %v", err)
		}
		if !found.NotAfter.Equal(pair.Leaf.NotAfter) {
			t.Errorf("got expiration time %s, want %s", found.NotAfter, pair.Leaf.NotAfter)
		}
	})
}
