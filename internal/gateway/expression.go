package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxExpressionSize limits the instructions of one regular expression. The connector
// evaluates the expressions of all tenants for each request, because it compares the path
// before the hostname. An instruction takes up to 10 ns for each character in the path.
const maxExpressionSize = 500

// maxExpressionLength limits the length of one regular expression. The time to parse an
// expression grows with it.
const maxExpressionLength = 2000

// The limits on expressions for one tenant and one Gateway, in instructions. An
// expression counts once for each routing table entry that has it.
const (
	maxInstructionsPerTenant = 1000
	maxInstructionsPerTable  = 5000
)

// The limits on the total expression length for one tenant and one Gateway. They bound
// the time to parse expressions, including expressions that other limits refuse.
const (
	maxExpressionsLengthPerTenant = 10_000
	maxExpressionsLengthPerTable  = 50_000
)

var (
	// errExpressionsRefused is the error for every expression when the GatewayClass
	// refuses regular expressions.
	errExpressionsRefused = errors.New("regular expression, refused by limits.regularExpressions of the GatewayClass")
	// errFoldedClass is the error for an expression that takes milliseconds to parse:
	// package regexp/syntax folds a range's characters one by one.
	errFoldedClass = errors.New("case-insensitive character class with characters outside ASCII")
)

// expressions translates the regular expressions in matches.
type expressions struct {
	// refused reports whether the GatewayClass refuses regular expressions.
	refused bool
	// unsupported returns why the data plane does not support an expression, or an empty
	// string. It is nil when the data plane supports every expression.
	unsupported func(string) string
}

// translate puts an expression into a non-capturing group, and returns the group and
// its size in instructions. It returns an error when the expression is not valid RE2,
// too large or refused.
//
// The expression must compile alone and in the group, or a parenthesis could close the
// group early. A quotation (\Q) without an end must end before the closing parenthesis.
func (e expressions) translate(expression string) (enclosed string, size int, err error) {
	switch {
	case e.refused:
		return "", 0, errExpressionsRefused
	case expressionLength(expression) > maxExpressionLength:
		return "", 0, fmt.Errorf("regular expression with a length of %d, the limit is %d", expressionLength(expression), maxExpressionLength)
	case isFoldedClass(expression):
		return "", 0, errFoldedClass
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", 0, fmt.Errorf("invalid RE2 expression %q", expression)
	}
	size = expressionSize(parsed)
	if size > maxExpressionSize {
		return "", 0, fmt.Errorf("regular expression with %d instructions, the limit is %d", size, maxExpressionSize)
	}
	for _, end := range []string{")", `\E)`} {
		enclosed = "(?:" + expression + end
		if _, err := regexp.Compile(enclosed); err == nil {
			return enclosed, size, e.problem(expression)
		}
	}
	return "", 0, fmt.Errorf("invalid RE2 expression %q", expression)
}

// ExpressionProblem returns why the controller does not serve a match with the regular
// expression, whichever the data plane and the other matches are, or "".
func ExpressionProblem(expression string) string {
	if _, _, err := (expressions{}).translate(expression); err != nil {
		return err.Error()
	}
	return ""
}

// problem returns why the data plane does not support the expression, or nil.
func (e expressions) problem(expression string) error {
	if e.unsupported == nil {
		return nil
	}
	if problem := e.unsupported(expression); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// expressionLength returns the length of the expression in bytes. A class such as \pL
// counts like ten more bytes, because it has hundreds of ranges.
func expressionLength(expression string) int {
	const unicodeClass = 10
	return len(expression) + unicodeClass*(strings.Count(expression, `\p`)+strings.Count(expression, `\P`))
}

var foldFlag = regexp.MustCompile(`\(\?[a-zA-Z-]*i`)

// isFoldedClass reports whether the expression can contain a character class that ignores
// case and has characters outside ASCII.
func isFoldedClass(expression string) bool {
	isASCII := strings.IndexFunc(expression, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	return strings.Contains(expression, "[") && (!isASCII || strings.Contains(expression, `\x{`)) && foldFlag.MatchString(expression)
}

// maxCountedSize stops counting, so that nested repetitions do not overflow.
const maxCountedSize = 1 << 30

// expressionSize returns how many instructions the compiled expression has with its
// anchors. It expands bounded repetitions by arithmetic, because compiling them would
// cost what the limit prevents. The compiler never needs more instructions than are
// counted.
func expressionSize(re *syntax.Regexp) int {
	const anchorsFailAndMatch = 4
	return min(anchorsFailAndMatch+instructions(re), maxCountedSize)
}
func instructions(re *syntax.Regexp) int {
	operands := 0
	for _, sub := range re.Sub {
		operands = min(operands+instructions(sub), maxCountedSize)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return max(1, len(re.Rune))
	case syntax.OpCharClass:
		return classInstructions(re)
	case syntax.OpCapture:
		return operands + 2
	case syntax.OpStar:
		return operands + 2 // one more when the operand matches the empty string
	case syntax.OpPlus, syntax.OpQuest:
		return operands + 1
	case syntax.OpRepeat:
		return repeatedInstructions(re, operands)
	case syntax.OpConcat:
		return max(1, operands)
	case syntax.OpAlternate:
		return operands + len(re.Sub) - 1
	default:
		return 1
	}
}

// classInstructions counts a large character class twice: package regexp searches up to
// four ranges one by one, and more by bisection, which takes about twice the time of
// another instruction.
func classInstructions(re *syntax.Regexp) int {
	const ends = 2 // for each range in re.Rune
	if len(re.Rune) > 4*ends {
		return 2
	}
	return 1
}

// repeatedInstructions returns the instructions for a bounded repetition, which the
// compiler expands: x{2,4} is xx(x(x)?)?, and x{2,} is xx+.
func repeatedInstructions(re *syntax.Regexp, operand int) int {
	copies, loops := re.Max, re.Max-re.Min
	if re.Max < 0 {
		copies, loops = max(1, re.Min), 2
	}
	return min(max(1, copies*operand+loops), maxCountedSize)
}
