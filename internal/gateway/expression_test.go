package gateway

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

func TestExpressionSizeCountsInstructions(t *testing.T) {
	for expression, want := range map[string]int{
		"":                 5,
		"/":                5,
		"/cart":            9,
		"[a-z]+":           6,
		`\pL+`:             7,
		"(a)":              7,
		"(.?){999}":        4 + 999*4,
		"(.?){2,4}":        4 + 4*4 + 2,
		"a{0}":             5,
		"a{3,}":            9,
		"((a{10}){10}){5}": 4 + 5*(2+10*(2+10)),
	} {
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := expressionSize(parsed); got != want {
			t.Errorf("%s has %d instructions, want %d", expression, got, want)
		}
	}
}

// FuzzExpressionSize compares the count with the compiler: the count is never too low.
func FuzzExpressionSize(f *testing.F) {
	for _, seed := range []string{"", "(a*)*", "(?:a{2,3}b?)+|c{4,}", `\Q+`, "(?i)straße", "[[:alpha:]]{7}", "(|a){5}", "(?:){9}", "a**", "^$|\\b"} {
		f.Add(seed)
	}
	f.Fuzz(wantSizeOfCompiler)
}

func wantSizeOfCompiler(t *testing.T, expression string) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || len(expression) > 100 {
		t.Skip("not an expression that the test compiles")
	}
	size := expressionSize(parsed)
	if size > 100_000 {
		t.Skip("too large to compile in a test")
	}
	enclosed, err := syntax.Parse("^(?:"+expression+")$", syntax.Perl)
	if err != nil {
		t.Skip("not an expression in a group")
	}
	compiled, err := syntax.Compile(enclosed.Simplify())
	if err != nil {
		t.Fatal(err)
	}
	if actual := len(compiled.Inst); actual > size {
		t.Errorf("%q has %d instructions, but %d are counted", expression, actual, size)
	}
}

func TestExpressionSizeIsNeverTooLow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // the test must be reproducible
	for range 20000 {
		wantSizeOfCompiler(t, randomExpression(r, 4))
	}
}

func randomExpression(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "bc", ".", "[a-z]", `\d`, "^", "$", `\b`, "", "é"}[r.IntN(10)]
	}
	sub := func() string { return randomExpression(r, depth-1) }
	switch r.IntN(6) {
	case 0:
		return sub() + sub()
	case 1:
		return "(?:" + sub() + "|" + sub() + ")"
	case 2:
		return "(" + sub() + ")"
	case 3:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "*?", "{0}", "{1}", "{2}", "{0,3}", "{2,4}", "{3,}", "{0,}", "{1,}"}[r.IntN(12)]
	case 4:
		return "(?i:" + sub() + ")"
	default:
		return strings.Repeat(sub(), 2)
	}
}

// BenchmarkEveryBudgetOfExpressions compares a path of 2,000 characters with the rules on
// a Gateway whose tenants have used up every budget with the slowest known expressions.
// The connector compares the path with every rule. It must take less than 100 ms.
func BenchmarkEveryBudgetOfExpressions(b *testing.B) {
	for name, expression := range map[string]string{
		"optional characters": "/(?:.?){%d}!",
		"any characters":      "/(?:.+){%d}!",
		"letters":             `/(?:\pL+){%d}!`,
		"several classes":     `/(?:[\pL\pN\pS]+){%d}!`,
		"groups":              "/(?:(.*)){%d}!",
		"folded letters":      "(?i)/(?:k?){%d}!",
		"word boundaries":     `/(?:(?:a|\b)*){%d}!`,
	} {
		for path, character := range map[string]string{"ASCII": "a", "Latin": "ü", "Han": "龍"} {
			b.Run(name+"/"+path, func(b *testing.B) {
				rules := rulesWithEveryBudget(b, expression)
				request := "/" + strings.Repeat(character, 1999)
				for b.Loop() {
					for _, rule := range rules {
						rule.MatchString(request)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/request")
			})
		}
	}
}

// rulesWithEveryBudget returns the compiled expressions that use up the limit of a
// Gateway.
func rulesWithEveryBudget(b *testing.B, format string) []*regexp.Regexp {
	expression, size := "", 0
	for n := 1; ; n++ {
		_, next, err := (expressions{}).translate(fmt.Sprintf(format, n))
		if err != nil {
			break
		}
		expression, size = fmt.Sprintf(format, n), next
	}
	var rules []*regexp.Regexp
	for used := 0; used+size <= maxInstructionsPerTable; used += size {
		rules = append(rules, regexp.MustCompile("^(?:"+expression+")$"))
	}
	if len(rules) < maxInstructionsPerTable/maxExpressionSize {
		b.Fatalf("only %d rules", len(rules))
	}
	return rules
}
