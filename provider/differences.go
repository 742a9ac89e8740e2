package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Differences says what somebody changed who made have of want: one short line
// for people for every difference, in the same order every time. There is none
// exactly when both have the same [Configuration.Hash].
//
// A rule is known by its hostname and path, so that one more rule is one line
// and not a change of all after it. Its number is its place in have, from 1.
func Differences(have, want Configuration) []string {
	haveKeys, wantKeys := ruleKeys(have.Ingress), ruleKeys(want.Ingress)
	haveAt, wantAt := places(haveKeys), places(wantKeys)
	var lines []string
	last, reordered := -1, false
	for i, key := range haveKeys {
		subject := fmt.Sprintf("rule %d (%s)", i+1, key)
		at, ok := wantAt[key]
		if !ok {
			lines = append(lines, subject+" was added")
			continue
		}
		lines = append(lines, ruleDifferences(subject, have.Ingress[i], want.Ingress[at])...)
		reordered = reordered || at < last
		last = at
	}
	for _, key := range wantKeys {
		if _, ok := haveAt[key]; !ok {
			lines = append(lines, fmt.Sprintf("the rule for %s was removed", key))
		}
	}
	if reordered {
		lines = append(lines, "the rules are in another order")
	}
	return append(lines, originDifferences("originRequest: ", have.OriginRequest, want.OriginRequest)...)
}

// ruleKey is what a rule is known by.
type ruleKey struct {
	hostname, path string
	// earlier is how many rules above it have the same hostname and path.
	earlier int
}

func ruleKeys(rules []IngressRule) []ruleKey {
	seen := map[ruleKey]int{}
	keys := make([]ruleKey, 0, len(rules))
	for _, rule := range rules {
		key := ruleKey{hostname: rule.Hostname, path: rule.Path}
		count := seen[key]
		seen[key]++
		key.earlier = count
		keys = append(keys, key)
	}
	return keys
}

func (k ruleKey) String() string {
	words := []string{"all hosts"}
	if k.hostname != "" {
		words[0] = readable(k.hostname)
	}
	if k.path != "" {
		words = append(words, readable(k.path))
	}
	if k.earlier > 0 {
		words[len(words)-1] += fmt.Sprintf(", copy %d", k.earlier+1)
	}
	return strings.Join(words, " ")
}

// places returns the index of every key.
func places(keys []ruleKey) map[ruleKey]int {
	at := make(map[ruleKey]int, len(keys))
	for i, key := range keys {
		at[key] = i
	}
	return at
}

func ruleDifferences(subject string, have, want IngressRule) []string {
	lines := fieldDifferences(subject+": ", "service", have.Service, want.Service)
	return append(lines, originDifferences(subject+": originRequest: ", have.OriginRequest, want.OriginRequest)...)
}

func originDifferences(subject string, have, want OriginRequest) []string {
	if reflect.DeepEqual(have, want) {
		return nil
	}
	return fieldDifferences(subject, "", wireForm(have), wireForm(want))
}

// wireForm returns the block as JSON has it, where what is unset is not there.
func wireForm(o OriginRequest) any {
	document, _ := json.Marshal(o) // strings, integers and booleans always marshal
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var fields map[string]any
	_ = decoder.Decode(&fields) // and are read back
	return fields
}

// fieldDifferences compares two values of JSON: objects field by field, all
// others as a whole.
func fieldDifferences(subject, field string, have, want any) []string {
	haveFields, isObject := have.(map[string]any)
	wantFields, areObjects := want.(map[string]any)
	if !isObject || !areObjects {
		if reflect.DeepEqual(have, want) {
			return nil
		}
		return []string{fmt.Sprintf("%s%s is %s, not %s", subject, field, valueText(have), valueText(want))}
	}
	all := maps.Clone(haveFields)
	maps.Copy(all, wantFields)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := strings.TrimPrefix(field+"."+name, ".")
		lines = append(lines, fieldDifferences(subject, path, haveFields[name], wantFields[name])...)
	}
	return lines
}

func valueText(value any) string {
	switch v := value.(type) {
	case nil:
		return "unset"
	case string:
		return readable(v)
	}
	text, _ := json.Marshal(value) // it came from JSON
	return readable(string(text))
}

// Of a text that is longer than both ends together, only those are shown: the
// end of a service has its port.
const (
	shownBeginning = 80
	shownEnd       = 40
)

// readable returns the text in one line of sane length, in quotes when it could
// be mistaken otherwise.
func readable(text string) string {
	if runes := []rune(text); len(runes) > shownBeginning+shownEnd {
		text = string(runes[:shownBeginning]) + "…" + string(runes[len(runes)-shownEnd:])
	}
	plain := text != "" && text == strings.TrimSpace(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !strconv.IsPrint(r) || r == '\uFFFD'
	})
	if plain {
		return text
	}
	return strconv.Quote(text)
}
