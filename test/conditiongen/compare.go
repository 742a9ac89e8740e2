package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// compareGolden returns an error for each reason that only a golden case or only
// the texts have. The golden cases map each reason to a file.
func (c *catalogue) compareGolden(golden map[reasonKey]string) error {
	var errs []error
	texts := c.reasons()
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

// checkTests returns an error for each reason whose test file does not contain it. The
// directory is the repository root.
func (c *catalogue) checkTests(directory string) error {
	var errs []error
	for key, text := range c.reasons() {
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
