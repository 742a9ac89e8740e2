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

// Differences describes the changes that turn configuration want into have, for
// messages and logs: one short line for each difference, in a stable order. It returns
// no lines if and only if both have the same [Configuration.Hash].
//
// Rules are compared by hostname and path, so an inserted rule is one difference and
// does not affect the rules after it. The number of a rule is its position in have,
// starting at 1.
func Differences(have, want Configuration) []string {
	haveKeys, wantKeys := ruleKeys(have.Ingress), ruleKeys(want.Ingress)
	haveIndex, wantIndex := indexByKey(haveKeys), indexByKey(wantKeys)
	var lines []string
	last, reordered := -1, false
	for i, key := range haveKeys {
		subject := fmt.Sprintf("rule %d (%s)", i+1, key)
		index, ok := wantIndex[key]
		if !ok {
			lines = append(lines, subject+" was added")
			continue
		}
		lines = append(lines, ruleDifferences(subject, have.Ingress[i], want.Ingress[index])...)
		reordered = reordered || index < last
		last = index
	}
	for _, key := range wantKeys {
		if _, ok := haveIndex[key]; !ok {
			lines = append(lines, fmt.Sprintf("the rule for %s was removed", key))
		}
	}
	if reordered {
		lines = append(lines, "the order of the rules was changed")
	}
	return append(lines, originDifferences("originRequest: ", have.OriginRequest, want.OriginRequest)...)
}

// ruleKey identifies a rule within a configuration.
type ruleKey struct {
	hostname, path string
	// duplicates is the number of earlier rules with the same hostname and path.
	duplicates int
}

func ruleKeys(rules []IngressRule) []ruleKey {
	seen := map[ruleKey]int{}
	keys := make([]ruleKey, 0, len(rules))
	for _, rule := range rules {
		key := ruleKey{hostname: rule.Hostname, path: rule.Path}
		count := seen[key]
		seen[key]++
		key.duplicates = count
		keys = append(keys, key)
	}
	return keys
}

func (k ruleKey) String() string {
	words := []string{"every hostname"}
	if k.hostname != "" {
		words[0] = readable(k.hostname)
	}
	if k.path != "" {
		words = append(words, readable(k.path))
	}
	if k.duplicates > 0 {
		words[len(words)-1] += fmt.Sprintf(", copy %d", k.duplicates+1)
	}
	return strings.Join(words, " ")
}

// indexByKey returns the index of every key.
func indexByKey(keys []ruleKey) map[ruleKey]int {
	index := make(map[ruleKey]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	return index
}

func ruleDifferences(subject string, have, want IngressRule) []string {
	lines := fieldDifferences(subject+": ", "service", have.Service, want.Service)
	return append(lines, originDifferences(subject+": originRequest: ", have.OriginRequest, want.OriginRequest)...)
}

func originDifferences(subject string, have, want OriginRequest) []string {
	if reflect.DeepEqual(have, want) {
		return nil
	}
	return fieldDifferences(subject, "", jsonFields(have), jsonFields(want))
}

// jsonFields returns the fields of the JSON form of o, without unset fields.
func jsonFields(o OriginRequest) any {
	encoded, _ := json.Marshal(o) // strings, integers and booleans always marshal
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var fields map[string]any
	_ = decoder.Decode(&fields) // valid JSON always decodes
	return fields
}

// fieldDifferences compares two JSON values: objects field by field, all other values
// as a whole.
func fieldDifferences(subject, field string, have, want any) []string {
	haveFields, haveIsObject := have.(map[string]any)
	wantFields, wantIsObject := want.(map[string]any)
	if !haveIsObject || !wantIsObject {
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
	text, _ := json.Marshal(value) // values from JSON always marshal
	return readable(string(text))
}

// A text that is longer than shownPrefix and shownSuffix together is shortened to
// these numbers of characters at its beginning and its end. The end is shown because
// the URL of a service ends with the port.
const (
	shownPrefix = 80
	shownSuffix = 40
)

// readable returns the text as one line of limited length. It quotes a text that is
// empty, begins or ends with a space, or contains unprintable characters.
func readable(text string) string {
	if runes := []rune(text); len(runes) > shownPrefix+shownSuffix {
		text = string(runes[:shownPrefix]) + "…" + string(runes[len(runes)-shownSuffix:])
	}
	plain := text != "" && text == strings.TrimSpace(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !strconv.IsPrint(r) || r == '\uFFFD'
	})
	if plain {
		return text
	}
	return strconv.Quote(text)
}
