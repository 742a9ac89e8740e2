package gateway_test

import (
	"slices"
	"strings"
)

// expressionValues are regular expressions. Package regexp accepts some that Envoy's
// library rejects, and the other way around.
var expressionValues = slices.Concat(
	words(served, `/a /a|/b .* (/a)(/b)? ^/a$ /[a-z]+/\d+ \pN \PN \pL \p{L} \p{Lu} \P{Lu} \p{^Lu} [\p{Lu}\d] \p{Any} (?P<n>a) (?<n>a) (?P<_>a) (?P<1>a) \Qa.b\E \Qa.b \Qa\ \Qa\\E \Q\E \Q\Q\E \Qab\E* a\z `+
		`\Aa\z (?i)/A (?U)a+ (?s). (?m)^a$ (?i:a) (?-i)a (?ims-U)a (?ii)a (?i-i)a (?)a x{400} x{0} x{0,0} (|a)* (a|)+ () (?:) | a| |a [[:word:]] [[:^alpha:]] [^a] []a] [a-] [-a] [[=a=]] [[.a.]] `+
		`\x41 \x{41} \x7f \x00 \0 \101 \177 \a\f\v\t \_ \- \. \/ \b \B \d\D\s\S\w\W $ ^ ^$ $^ a{,5} a{ a{1 a*? a+? a?? (?:a{0})* (?:a*)* (a*)* (?:\pL){240} (?:[^a]){200} [\pL\pN\pP\pS]{200} (?i)\p{Lu}{200} (?:.){400} (?P<n>a)(?P<n>b) (?P<n>a)(?<n>b)`),
	words(omitted("invalid RE2 expression"), `( ) [ [^] [a-\d] [b-a] [[:foo:]] * + ? a** a++ a{2,1} a{1,2}{3} a{1001} (a{100}){11} \C \Z \G \K \h \R \X \E a\Eb \Q\E* [\Q]\E] \1 \8 \c \cA \u0041 \ud800 \N{x} \x4 \x{} \x{110000} \é (?=a) `+
		`(?!a) (?<=a) (?#c) (?>a) (?i-)a (?-)a (?x)a (?P<>a) (?P<é>a) (?P=n) \p{Script=Greek} \p{Unknown} \p{Zyyy} \p{L \pé ((((((a*)*)*)*)*)* a)|(b`),
	each(omitted("invalid RE2 expression"), `\`, `a\`),
	words(omitted("instructions, the limit is 500"), "x{1000} (?:a?){300} (a{10}){100}"),
	each(omitted("empty regular expression"), ""),
	each(served, "a b", "a\nb", "a\x00b", "\x7f"),
	notBytes,
)

// notBytes are expressions that Envoy rejects or evaluates in another way: its library
// compares bytes, and knows only exact Unicode class names.
var notBytes = slices.Concat(
	words(omitted("with the Unicode class"), `\p{greek} \p{Letter} \p{letter} \P{Letter} \p{^Letter} [\p{Letter}] \p{ASCII} \p{Assigned} \p{LC} \p{Cn} \p{any} \p{lu} \p{L_u} \p{digit} \p{Greek} \p{Han} \P{Greek} \p{Kawi} [^\p{Latin}]`),
	words(omitted("for a character outside ASCII"), `[^\x00-\x{10FFFF}] \x{10FFFF} \x{100} \x{d800} [\x{100}-\x{200}] \x{80} \xe9 \xff [\x80-\xff] \200 \377 \777 \Qa\E\xff`),
	words(omitted("with characters outside ASCII"), `[\xf0-ñ] [\360-ñ] é [é] é{3} (?i)é \Qé\E`), each(omitted("with characters outside ASCII"), "\u2028", "\ufffd"),
	words(served, `\Q\xff\E \\xff \\p{greek} \Q\p{greek}\E\p{Lu} [\\x{100}] \x{7f} \177 \0007`),
)

var fewExpressions = slices.Concat(
	words(served, `1 [12] ^1$ 1|2 (?i)a \pL`), words(omitted("invalid RE2 expression"), `( \C (?=a)`), words(omitted("instructions, the limit is 500"), "x{1000}"), notBytes, each(served, "a\x00", "\n"), each(api, ""),
)

var fewGRPCExpressions = slices.Concat(
	words(served, `a a.* a|b (?i)a \pL \Qa [^/]+`), words(omitted("invalid RE2 expression"), `( a)|(b \C (?=a)`), notBytes, each(omitted("instructions"), strings.Repeat("x", 501)), each(served, "a\x00"),
)
