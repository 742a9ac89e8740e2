package gateway

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// pathMatch is a path match and the equivalent expression of an ingress rule.
type pathMatch struct {
	kind gatewayv1.PathMatchType
	// length is the length of a prefix, which decides its precedence.
	length int
	// expression is an RE2 expression for the decoded path. The connector does not
	// anchor it, so the expression contains its own anchors. It is empty when every
	// path matches.
	expression string
}

// newPathMatch translates a path match, or returns an error that names the value
// that an ingress rule cannot express.
func newPathMatch(match *gatewayv1.HTTPPathMatch) (pathMatch, error) {
	// The CRD defaults the path match to PathPrefix "/".
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if match != nil {
		kind, value = ptr.Deref(match.Type, kind), ptr.Deref(match.Value, value)
	}
	switch kind {
	case gatewayv1.PathMatchExact:
		path, err := decodePath(value)
		return pathMatch{kind: kind, expression: "^" + regexp.QuoteMeta(path) + "$"}, err
	case gatewayv1.PathMatchPathPrefix:
		return newPrefixMatch(value)
	case gatewayv1.PathMatchRegularExpression:
		return newRegularExpressionMatch(value)
	default:
		return pathMatch{}, fmt.Errorf("path type %s", kind)
	}
}

// newPrefixMatch translates a prefix: "Matching is case-sensitive and done on a
// path element by element basis. [...] When specified, a trailing `/` is
// ignored." (PathMatchPathPrefix)
func newPrefixMatch(value string) (pathMatch, error) {
	prefix, err := decodePath(strings.TrimRight(value, "/"))
	if err != nil || prefix == "" {
		return pathMatch{kind: gatewayv1.PathMatchPathPrefix}, err
	}
	return pathMatch{
		kind:       gatewayv1.PathMatchPathPrefix,
		length:     len(prefix),
		expression: "^" + regexp.QuoteMeta(prefix) + "(/|$)",
	}, nil
}

// newRegularExpressionMatch anchors the expression, so that it matches the whole
// path.
func newRegularExpressionMatch(value string) (pathMatch, error) {
	enclosed, ok := wrapInGroup(value)
	if !ok {
		return pathMatch{}, fmt.Errorf("invalid RE2 expression %q", value)
	}
	return pathMatch{kind: gatewayv1.PathMatchRegularExpression, expression: "^" + enclosed + "$"}, nil
}

// wrapInGroup puts an expression into a non-capturing group. It returns false when
// the expression is not valid RE2. The expression must compile alone and in the
// group, or a parenthesis could close the group early. A quotation (\Q) without an
// end must end before the closing parenthesis.
func wrapInGroup(expression string) (string, bool) {
	if _, err := regexp.Compile(expression); err != nil {
		return "", false
	}
	for _, end := range []string{")", `\E)`} {
		enclosed := "(?:" + expression + end
		if _, err := regexp.Compile(enclosed); err == nil {
			return enclosed, true
		}
	}
	return "", false
}

// decodePath decodes a literal path. A path match in the API is percent-encoded,
// but the connector matches the decoded path.
func decodePath(path string) (string, error) {
	decoded, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(decoded) {
		return "", fmt.Errorf("path %q with invalid encoding", path)
	}
	return decoded, nil
}

// comparePaths orders Exact before RegularExpression before PathPrefix, and
// longer prefixes before shorter prefixes.
func comparePaths(a, b pathMatch) int {
	return cmp.Or(cmp.Compare(pathRank(a.kind), pathRank(b.kind)), cmp.Compare(b.length, a.length))
}

func pathRank(kind gatewayv1.PathMatchType) int {
	switch kind {
	case gatewayv1.PathMatchExact:
		return 0
	case gatewayv1.PathMatchRegularExpression:
		return 1
	default:
		return 2
	}
}
