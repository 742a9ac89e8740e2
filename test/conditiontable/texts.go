package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// texts are what the page says besides its head.
type texts struct {
	Kinds    []kind     `json:"kinds"`
	Problems problemSet `json:"problems"`
	Events   eventSet   `json:"events"`
}

// kind is what has conditions: an object, or a part of one.
type kind struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	// Short begins the headings of its conditions, which other pages link to.
	Short string `json:"short"`
	Intro string `json:"intro"`
	// Catalogued is whether the catalogues of package tunnel describe the reasons
	// that have no text here.
	Catalogued bool        `json:"catalogued"`
	Conditions []condition `json:"conditions"`
}

// condition is one type of a kind's conditions.
type condition struct {
	Type    string   `json:"type"`
	About   string   `json:"about"`
	Reasons []reason `json:"reasons"`
	// Problems says which problems of a tunnel are further reasons; empty when
	// none is.
	Problems string `json:"problems"`
}

// reason is a row of the page.
type reason struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
	Means  string `json:"means"`
	Do     string `json:"do"`
	// Unseen says why no golden case has it; then Test is the file that tests it,
	// if there is one.
	Unseen string `json:"unseen"`
	Test   string `json:"test"`
	// Default says who sets it, when that is not the controller.
	Default string `json:"default"`
}

// problemSet are the problems of tunnels, as the catalogue of package tunnel has
// them.
type problemSet struct {
	Intro string `json:"intro"`
	// More adds a link to what to do about a reason.
	More map[string]string `json:"more"`
	Rows []problem         `json:"-"`
}

type problem struct {
	Reason, Means, Do string
	// NeedsPerson is whether the problem lasts until a person acts.
	NeedsPerson bool
}

// eventSet are the events: those of package tunnel, after others.
type eventSet struct {
	Intro string `json:"intro"`
	// More adds a link to what to do about an event of package tunnel.
	More map[string]string `json:"more"`
	Rows []eventRow        `json:"rows"`
}

type eventRow struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// On is the object that the event is about.
	On    string `json:"on"`
	Means string `json:"means"`
	Do    string `json:"do"`
}

func readTexts(data []byte) (*texts, error) {
	t := &texts{}
	if err := yaml.UnmarshalStrict(data, t); err != nil {
		return nil, err
	}
	var errs []error
	errs = append(errs, t.addCatalogues())
	for where, r := range t.reasons() {
		if r.Means == "" || r.Do == "" {
			errs = append(errs, fmt.Errorf("%s does not say what it means, or what to do", where))
		}
	}
	for _, row := range t.Events.Rows {
		if row.Means == "" || row.Do == "" {
			errs = append(errs, fmt.Errorf("the event %s does not say what it means, or what to do", row.Reason))
		}
	}
	return t, errors.Join(errs...)
}

// said is what one condition reports.
type said struct{ kind, condition, status, reason string }

func (s said) String() string {
	return fmt.Sprintf("%s of a %s: %s %s", s.condition, s.kind, s.status, s.reason)
}

func (t *texts) reasons() map[said]reason {
	all := map[said]reason{}
	for _, k := range t.Kinds {
		for _, c := range k.Conditions {
			for _, r := range c.Reasons {
				all[said{k.Kind, c.Type, r.Status, r.Reason}] = r
			}
		}
	}
	return all
}

// compare compares the texts with the code.
func (t *texts) compare(c *code) error {
	conditions, reasons := map[string]bool{}, map[string]bool{}
	for s, r := range t.reasons() {
		conditions[s.condition] = true
		if r.Default == "" {
			reasons[s.reason] = true
		}
	}
	for _, row := range t.Problems.Rows {
		reasons[row.Reason] = true
	}
	events := map[string]bool{}
	for _, row := range t.Events.Rows {
		events[row.Type+" "+row.Reason] = true
	}
	made := found{}
	for event, place := range c.events {
		kind := event[0]
		if kind == "" { // it depends; the texts know
			kind = "Normal"
		}
		made[kind+" "+event[1]] = place
	}
	return errors.Join(
		differences("the condition", c.types, conditions), differences("the reason", c.reasons, reasons), differences("the event", made, events))
}

// differences names what only the code has, and what only the texts have.
func differences(what string, code found, texts map[string]bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !texts[name] {
			errs = append(errs, fmt.Errorf("%s %s has no text: %s", what, name, code[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, ok := code[name]; !ok {
			errs = append(errs, fmt.Errorf("%s %s has a text, and nothing in the code makes it", what, name))
		}
	}
	return errors.Join(errs...)
}

// compareCases compares the texts with what the golden cases say, and where.
func (t *texts) compareCases(cases map[said]string) error {
	var errs []error
	all := t.reasons()
	for s, place := range cases {
		if _, ok := all[s]; !ok {
			errs = append(errs, fmt.Errorf("%s has no text: %s", s, place))
		}
	}
	for s, r := range all {
		_, seen := cases[s]
		excused := r.Unseen != "" || r.Default != ""
		switch {
		case seen && excused:
			errs = append(errs, fmt.Errorf("%s is excused, and there is a golden case: %s", s, cases[s]))
		case !seen && !excused:
			errs = append(errs, fmt.Errorf("%s has a text and no golden case; say why in `unseen`", s))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// checkTests makes sure that what no golden case has is tested where the texts
// say so.
func (t *texts) checkTests(root string) error {
	var errs []error
	for s, r := range t.reasons() {
		if r.Test == "" {
			continue
		}
		test, err := os.ReadFile(filepath.Join(root, r.Test))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s, err))
		} else if !strings.Contains(string(test), r.Reason) {
			errs = append(errs, fmt.Errorf("%s: %s does not name it", s, r.Test))
		}
	}
	return errors.Join(errs...)
}
