package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// maxExpressionSize is the maximum size of one regular expression in instructions. The
// connector evaluates the expressions of all tenants for each request, because it
// compares the path before the hostname. An instruction takes up to 10 ns for each
// character of the path.
const maxExpressionSize = 500

// The limits on the expressions of one tenant and of one Gateway in instructions. An
// expression counts once for each entry of the routing table that has it.
const (
	maxExpressionsPerTenant = 1000
	maxExpressionsPerTable  = 5000
)

// errExpressionsRefused is the error for every expression when the GatewayClass refuses
// regular expressions.
var errExpressionsRefused = errors.New("regular expression, refused by limits.regularExpressions of the GatewayClass")

// expressions translates the regular expressions of matches.
type expressions struct {
	// refused reports whether the GatewayClass refuses regular expressions.
	refused bool
}

// translate puts an expression into a non-capturing group, and returns the group and
// its size in instructions. It returns an error when the expression is not valid RE2,
// too large or refused.
//
// The expression must compile alone and in the group, or a parenthesis could close the
// group early. A quotation (\Q) without an end must end before the closing parenthesis.
func (e expressions) translate(expression string) (enclosed string, size int, err error) {
	if e.refused {
		return "", 0, errExpressionsRefused
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", 0, fmt.Errorf("invalid RE2 expression %q", expression)
	}
	size = expressionSize(parsed)
	if size > maxExpressionSize {
		return "", 0, fmt.Errorf("regular expression of %d instructions, the limit is %d", size, maxExpressionSize)
	}
	for _, end := range []string{")", `\E)`} {
		enclosed = "(?:" + expression + end
		if _, err := regexp.Compile(enclosed); err == nil {
			return enclosed, size, nil
		}
	}
	return "", 0, fmt.Errorf("invalid RE2 expression %q", expression)
}

// maxCountedSize stops counting, so that nested repetitions do not overflow.
const maxCountedSize = 1 << 30

// expressionSize returns the number of instructions of the compiled expression. It
// expands bounded repetitions by arithmetic, because compiling them would cost what the
// limit prevents. The compiler never needs more instructions than are counted.
func expressionSize(re *syntax.Regexp) int {
	const failAndMatch = 2
	return min(failAndMatch+instructions(re), maxCountedSize)
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

// classInstructions counts a large character class twice: package regexp searches the
// ranges of a class one by one up to four, and by bisection above, which takes about
// twice the time of another instruction.
func classInstructions(re *syntax.Regexp) int {
	const ends = 2 // of each range in re.Rune
	if len(re.Rune) > 4*ends {
		return 2
	}
	return 1
}

// repeatedInstructions returns the instructions of a bounded repetition, which the
// compiler expands: x{2,4} is xx(x(x)?)?, and x{2,} is xx+.
func repeatedInstructions(re *syntax.Regexp, operand int) int {
	copies, loops := re.Max, re.Max-re.Min
	if re.Max < 0 {
		copies, loops = max(1, re.Min), 2
	}
	return min(max(1, copies*operand+loops), maxCountedSize)
}
