package main

import (
	"strings"
	"testing"
)

func TestCheckTestNames(t *testing.T) {
	long, short := strings.Repeat("word ", maxTestNameWords+1), strings.Repeat("word ", maxTestNameWords)
	for name, test := range map[string]struct {
		content string
		found   bool
	}{
		"a short function":  {"func Test" + strings.Repeat("Word", maxTestNameWords) + "() {}", false},
		"a long function":   {"func Test" + strings.Repeat("Word", maxTestNameWords+1) + "() {}", true},
		"another function":  {"func find" + strings.Repeat("Word", maxTestNameWords+1) + "() {}", false},
		"a short subtest":   {"func a() { t.Run(\"" + short + "\", nil) }", false},
		"a long subtest":    {"func a() { t.Run(\"" + long + "\", nil) }", true},
		"a long spec":       {"var _ = It(\"" + long + "\", nil)", true},
		"a message":         {"func a() { t.Error(\"" + long + "\") }", false},
		"a key":             {"var rows = map[string]int{\"" + long + "\": 1}", true},
		"a first value":     {"var rows = []struct{ name, x string }{{\"" + long + "\", \"\"}}", true},
		"another value":     {"var rows = []struct{ name, x string }{{\"a\", \"" + long + "\"}}", false},
		"a field":           {"var r = row{name: \"" + long + "\"}", true},
		"a row of messages": {"var rows = []struct{ text string }{{\"" + long + "\"}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			if found := checked(checkTestNames, "a_test.go", "package a\n\n"+test.content); (len(found) > 0) != test.found {
				t.Errorf("findings %v, want some: %t", found, test.found)
			}
		})
	}
}

func TestCheckTestNamesReportsTheLine(t *testing.T) {
	long := strings.Repeat("word ", maxTestNameWords) + "word"
	found := checked(checkTestNames, "a_test.go", "package a\n\nvar rows = map[string]int{\n\t\"a\": 1,\n\t\""+long+"\": 2,\n}\n")
	if want := "a_test.go:5: test name with 15 words, the maximum is 14: " + long; len(found) != 1 || found[0] != want {
		t.Errorf("findings %q, want %q", found, want)
	}
}
