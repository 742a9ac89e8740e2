package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// compareCode returns an error for each condition, reason and event that only the
// code or only the texts have.
func (t *conditionTexts) compareCode(r *reports) error {
	types, reasons, events := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for key, text := range t.reasons() {
		types[key.condition] = true
		if text.SetBy == "" {
			reasons[key.reason] = true
		}
	}
	for _, row := range t.Problems.rows {
		reasons[string(row.Reason)] = true
	}
	for _, row := range t.Events.Rows {
		events[row.Type+" "+row.Reason] = true
	}
	emitted := positions{}
	for event, position := range r.events {
		eventType := event.eventType
		if eventType == "" {
			// The type depends on a variable. The texts describe such an event as Normal.
			eventType = corev1.EventTypeNormal
		}
		emitted[eventType+" "+event.reason] = position
	}
	return errors.Join(
		differences("condition", r.types, types), differences("reason", r.reasons, reasons), differences("event", emitted, events))
}

// differences returns an error for each name that only the code or only the texts
// have.
func differences(kind string, code positions, texts map[string]bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !texts[name] {
			errs = append(errs, fmt.Errorf("%s %s: no text, but %s uses it", kind, name, code[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, found := code[name]; !found {
			errs = append(errs, fmt.Errorf("%s %s: a text, but no code uses it", kind, name))
		}
	}
	return errors.Join(errs...)
}

// compareGolden returns an error for each reason that only a golden case or only
// the texts have. The golden cases map each reason to a file.
func (t *conditionTexts) compareGolden(golden map[reasonKey]string) error {
	var errs []error
	texts := t.reasons()
	for key, file := range golden {
		if _, found := texts[key]; !found {
			errs = append(errs, fmt.Errorf("%s: no text, but %s has it", key, file))
		}
	}
	for key, text := range texts {
		_, found := golden[key]
		exempt := text.NotGolden != "" || text.SetBy != ""
		switch {
		case found && exempt:
			errs = append(errs, fmt.Errorf("%s: exempt from golden cases, but %s has it", key, golden[key]))
		case !found && !exempt:
			errs = append(errs, fmt.Errorf("%s: no golden case; give the reason in notGolden", key))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// checkTests returns an error for each reason whose test file does not contain
// it. The directory is the root of the repository.
func (t *conditionTexts) checkTests(directory string) error {
	var errs []error
	for key, text := range t.reasons() {
		if text.Test == "" {
			continue
		}
		test, err := os.ReadFile(filepath.Join(directory, text.Test))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		case !strings.Contains(string(test), text.Reason):
			errs = append(errs, fmt.Errorf("%s: %s does not contain the reason", key, text.Test))
		}
	}
	return errors.Join(errs...)
}
