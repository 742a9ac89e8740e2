package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// pathForm is a path expression of cloudflared, in the forms that a route can have.
// cloudflared searches the expression in the decoded path; in a route, it must match the
// whole path.
type pathForm struct {
	// every reports whether every path matches.
	every bool
	// exact or prefix is the only path that matches, or the element-wise prefix; at most
	// one is set.
	exact, prefix string
	// expression matches the whole path for the same paths.
	expression string
}

// parsePath returns the forms of a valid expression.
func parsePath(expression string) pathForm {
	if expression == "" {
		return pathForm{every: true}
	}
	f := pathForm{expression: wholePath(expression)}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return f
	}
	f.every = matchesEveryPath(parsed)
	f.exact, f.prefix = literalForms(parsed)
	return f
}

// notePaths notes once that Envoy compares paths in another form. A rule that closes a path does
// not close its other spellings then.
func (c *converter) notePaths() {
	i := slices.IndexFunc(c.destinations, func(d destination) bool { return d.reachable && !d.path.every })
	if i < 0 || c.DataPlane != v1alpha1.DataPlaneEnvoy {
		return
	}
	r := &c.input.Rules[i]
	c.addTop(NoteStep, fmt.Sprintf("ingress[%d].path", i), Value{Line: r.lines["path"]},
		"Envoy does not decode paths before it compares them, as cloudflared does: /a%2Fb does not match /a/b", "check the rules that close a path")
}

// matchesEveryPath reports whether the expression surely matches every path, which begins
// with a slash: it matches the empty string or a slash, with no condition for what
// follows.
func matchesEveryPath(re *syntax.Regexp) bool {
	parts := parts(re)
	if len(parts) > 0 && parts[0].Op == syntax.OpBeginText {
		parts = parts[1:]
	}
	if len(parts) > 0 && isLiteral(parts[0], "/") {
		parts = parts[1:]
	}
	return !slices.ContainsFunc(parts, func(part *syntax.Regexp) bool {
		return part.Op != syntax.OpStar && part.Op != syntax.OpQuest && part.Op != syntax.OpEmptyMatch
	})
}

// parts returns the operands of a concatenation, or the expression itself.
func parts(re *syntax.Regexp) []*syntax.Regexp {
	if re.Op == syntax.OpConcat {
		return re.Sub
	}
	return []*syntax.Regexp{re}
}

func isLiteral(re *syntax.Regexp, text string) bool {
	return re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0 && string(re.Rune) == text
}

// literalForms returns the path or the prefix that the expression is another form of.
func literalForms(re *syntax.Regexp) (exact, prefix string) {
	parts := parts(re)
	if len(parts) < 3 || parts[0].Op != syntax.OpBeginText || parts[1].Op != syntax.OpLiteral || parts[1].Flags&syntax.FoldCase != 0 {
		return "", ""
	}
	literal := string(parts[1].Rune)
	switch {
	case !canBeLiteral(literal) || len(parts) > 3 && !allStars(parts[3:]):
		return "", ""
	case len(parts) == 3 && parts[2].Op == syntax.OpEndText:
		return literal, ""
	case isElementEnd(parts[2]) && !strings.HasSuffix(literal, "/"):
		return "", literal
	}
	return "", ""
}

// allStars reports whether the rest of an expression matches everything, so that it has
// no effect at the end.
func allStars(parts []*syntax.Regexp) bool {
	return !slices.ContainsFunc(parts, func(part *syntax.Regexp) bool { return part.Op != syntax.OpStar })
}

// isElementEnd reports whether the expression is (/|$), in any order and any group.
func isElementEnd(re *syntax.Regexp) bool {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpAlternate || len(re.Sub) != 2 {
		return false
	}
	slash, end := re.Sub[0], re.Sub[1]
	if slash.Op == syntax.OpEndText {
		slash, end = end, slash
	}
	return isLiteral(slash, "/") && end.Op == syntax.OpEndText
}

// canBeLiteral reports whether an Exact or a PathPrefix match accepts the path, see
// HTTPPathMatch.
func canBeLiteral(path string) bool {
	if !strings.HasPrefix(path, "/") || len(escapePath(path)) > maxValueLength || strings.ContainsRune(path, '\uFFFD') {
		return false
	}
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(path, part) {
			return false
		}
	}
	return !strings.HasSuffix(path, "/.") && !strings.HasSuffix(path, "/..")
}

// maxValueLength is the limit for the value of a path match in the Gateway API.
const maxValueLength = 1024

// escapePath percent-encodes the characters that the Gateway API does not accept in a
// path.
func escapePath(path string) string {
	var escaped strings.Builder
	for i := range len(path) {
		if b := path[i]; strings.IndexByte("-./_~!$&'()*+,;=:@", b) >= 0 || isAlphanumeric(b) {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}

func isAlphanumeric(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// prefixExpression returns the expression for a prefix whose precedence would be wrong.
func prefixExpression(prefix string) string { return "(?s)" + regexp.QuoteMeta(prefix) + "(/.*)?" }

// multiLine finds the flag with which ^ and $ match at line breaks too.
var multiLine = regexp.MustCompile(`\(\?[a-zA-Z]*m`)

// escapes finds what a backslash escapes, and scopedFlag a group that sets flags.
var (
	escapes    = regexp.MustCompile(`\\.`)
	scopedFlag = regexp.MustCompile(`\(\?[a-zA-Z]*-`)
)

// wholePath returns the expression that matches the whole path exactly if the expression
// matches a part of it. The dots that it adds also match line breaks, which a path can
// contain in encoded form.
func wholePath(expression string) string {
	start, rest := cutStart(expression)
	rest, end := cutEnd(rest)
	if hasTopLevelAlternation(expression) || strings.Contains(expression, `\Q`) {
		start, rest, end = false, enclose(expression), false
	}
	anything, flag := ".*", "(?s)"
	if bare := escapes.ReplaceAllString(rest, ""); strings.Contains(bare, ".") || scopedFlag.MatchString(bare) {
		anything, flag = "(?s:.*)", "" // the flag would change the meaning of the rest
	}
	if start && end {
		return cmp.Or(rest, "^$") // an empty value would be a match for every path
	}
	var whole strings.Builder
	whole.WriteString(flag)
	if !start {
		whole.WriteString(anything)
	}
	whole.WriteString(rest)
	if !end {
		whole.WriteString(anything)
	}
	return whole.String()
}

// enclose encloses an expression in a group. A quotation (\Q) without an end must end first.
func enclose(expression string) string {
	if enclosed := "(?:" + expression + ")"; !strings.Contains(expression, `\Q`) || compiles(enclosed) && !strings.HasSuffix(enclosed, `\)`) {
		return enclosed
	}
	return "(?:" + expression + `\E)`
}

func compiles(expression string) bool {
	_, err := regexp.Compile(expression)
	return err == nil
}

// cutStart removes the anchor at the start, or what matches anything there.
func cutStart(expression string) (anchored bool, rest string) {
	if rest, ok := strings.CutPrefix(expression, "^"); ok {
		if rest != "" && strings.ContainsRune("*+?{", rune(rest[0])) {
			return false, expression
		}
		return true, rest
	}
	if rest, ok := strings.CutPrefix(expression, ".*"); ok && (rest == "" || !strings.ContainsRune("*+?{", rune(rest[0]))) {
		return false, rest
	}
	return false, expression
}

// cutEnd removes the anchor at the end, or what matches anything there.
func cutEnd(expression string) (rest string, anchored bool) {
	for {
		rest, ok := strings.CutSuffix(expression, ".*")
		if !ok || isEscaped(rest) {
			break
		}
		expression = rest
	}
	rest, ok := strings.CutSuffix(expression, "$")
	if ok && !isEscaped(rest) && !multiLine.MatchString(expression) {
		return rest, true
	}
	return expression, false
}

// isEscaped reports whether a backslash at the end of the text escapes the next character.
func isEscaped(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// hasTopLevelAlternation reports whether an alternative is outside all groups.
func hasTopLevelAlternation(expression string) bool {
	depth, inClass := 0, false
	for i := 0; i < len(expression); i++ {
		switch b := expression[i]; {
		case b == '\\':
			i++
		case inClass:
			inClass = b != ']'
		case b == '[':
			inClass = true
			if strings.HasPrefix(expression[i+1:], "]") || strings.HasPrefix(expression[i+1:], "^]") {
				i += strings.IndexByte(expression[i:], ']')
			}
		case b == '(':
			depth++
		case b == ')':
			depth--
		case b == '|' && depth == 0:
			return true
		}
	}
	return false
}
