package envoy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unsupportedExpression returns why Envoy cannot evaluate a regular expression that
// package regexp accepts, or "".
//
// Envoy's library compares bytes (RE2 with Latin-1). It rejects escapes for other
// characters, and a character class with other characters can mean a different one. It
// also knows only the exact names of Unicode classes.
func unsupportedExpression(expression string) string {
	switch {
	case expression == "":
		return "empty regular expression"
	case strings.IndexFunc(expression, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0:
		return fmt.Sprintf("regular expression %q with characters outside ASCII, which Envoy compares byte by byte", expression)
	}
	for _, escape := range expressionEscape.FindAllStringSubmatch(expression, -1) {
		hex, octal, class := escape[1]+escape[2], escape[3], escape[4]+escape[5]
		switch {
		case exceedsASCII(hex, 16), exceedsASCII(octal, 8):
			return fmt.Sprintf("regular expression %q with the escape %s for a character outside ASCII, which Envoy compares byte by byte", expression, escape[0])
		case class != "" && !generalCategory.MatchString(class):
			return fmt.Sprintf("regular expression %q with the Unicode class %s, which is not a general category such as \\p{Lu}", expression, escape[0])
		}
	}
	return ""
}

// expressionEscape matches a quotation or an escape. The submatches are the hexadecimal
// or octal number of a character, and the name of a Unicode class.
var expressionEscape = regexp.MustCompile(`(?s)\\Q.*?(?:\\E|$)|\\x(?:\{([[:xdigit:]]+)\}|([[:xdigit:]]{2}))|\\([0-7]{1,3})|\\[pP](?:\{\^?([^}]*)\}|(.))|\\.`)

// generalCategory matches the names of Unicode general categories. Cn and LC are absent,
// because RE2 does not have them.
var generalCategory = regexp.MustCompile(`^(?:Any|C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?)$`)

func exceedsASCII(digits string, base int) bool {
	code, err := strconv.ParseUint(digits, base, 32)
	return digits != "" && (err != nil || code >= utf8.RuneSelf)
}
