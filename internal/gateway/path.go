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

// pathMatch is a path match of the API and the expression by which a tunnel
// carries it out.
type pathMatch struct {
	kind gatewayv1.PathMatchType
	// length is that of a prefix, for the order of rules.
	length int
	// expression is RE2, matched anywhere in the decoded path, so it carries
	// its own anchors; empty for every path.
	expression string
}

// newPathMatch translates a match, or says what the tunnel cannot express.
func newPathMatch(match *gatewayv1.HTTPPathMatch) (pathMatch, error) {
	// CRD default: PathPrefix "/".
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
		return pathMatch{}, fmt.Errorf("path match of type %s", kind)
	}
}

// newPrefixMatch: "Matching is case-sensitive and done on a path element by
// element basis. [...] When specified, a trailing `/` is ignored."
// (PathMatchPathPrefix)
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

// newRegularExpressionMatch makes the expression match the whole path.
func newRegularExpressionMatch(value string) (pathMatch, error) {
	enclosed, ok := wrapInGroup(value)
	if !ok {
		return pathMatch{}, fmt.Errorf("RegularExpression %q, which is not RE2", value)
	}
	return pathMatch{kind: gatewayv1.PathMatchRegularExpression, expression: "^" + enclosed + "$"}, nil
}

// wrapInGroup makes a group of an expression, and returns false when it is not RE2.
// It must compile by itself as well as inside the group, or a parenthesis could
// reach out; and a quotation (\Q), which may be left open, must end in there.
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

// decodePath decodes a literal path: the connector matches the decoded path,
// while the API takes an encoded one ("%20" for a space).
func decodePath(path string) (string, error) {
	decoded, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(decoded) {
		return "", fmt.Errorf("path %q, which is not encoded UTF-8", path)
	}
	return decoded, nil
}

// comparePaths orders Exact before RegularExpression before PathPrefix, and
// longer prefixes before shorter ones.
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
