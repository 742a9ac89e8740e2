package main

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// conditionTexts are the texts of the page without its head.
type conditionTexts struct {
	Kinds    []kindTexts  `json:"kinds"`
	Problems problemTexts `json:"problems"`
	Events   eventTexts   `json:"events"`
}

// kindTexts describes the conditions of an object, or of a part of an object.
type kindTexts struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	// Short is the prefix of the headings of the conditions. Other pages link to
	// these headings.
	Short string `json:"short"`
	Intro string `json:"intro"`
	// Catalogued is whether the catalogue of package tunnel describes the reasons
	// that have no text here.
	Catalogued bool            `json:"catalogued"`
	Conditions []conditionText `json:"conditions"`
}

// conditionText describes a type of condition.
type conditionText struct {
	Type    string       `json:"type"`
	About   string       `json:"about"`
	Reasons []reasonText `json:"reasons"`
	// Problems states which problems of a tunnel are also reasons of the condition;
	// "" if none is.
	Problems string `json:"problems"`
}

// reasonText describes a status and reason of a condition.
type reasonText struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
	// NotGolden explains why no golden case has the reason; "" if a case has it.
	NotGolden string `json:"notGolden"`
	// Test is a test file that covers a reason that no golden case has.
	Test string `json:"test"`
	// SetBy is the component that sets the reason, if it is not the controller. It
	// begins a sentence.
	SetBy string `json:"setBy"`
}

// problemTexts describes the problems of tunnels.
type problemTexts struct {
	Intro string `json:"intro"`
	// Links are appended to the remedies, by reason.
	Links map[string]string `json:"links"`
	// rows come from the catalogue of package tunnel.
	rows []tunnel.Entry
}

// eventTexts describes the events.
type eventTexts struct {
	Intro string `json:"intro"`
	// Links are appended to the remedies of the events of package tunnel, by reason.
	Links map[string]string `json:"links"`
	// Rows are the events of the file, followed by the events of package tunnel.
	Rows []eventText `json:"rows"`
}

// eventText describes an event.
type eventText struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// Object is the kind of the object that has the event.
	Object  string `json:"object"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
}

// reasonKey identifies a reason of a condition.
type reasonKey struct{ kind, condition, status, reason string }

func (k reasonKey) String() string {
	return fmt.Sprintf("%s %s: %s %s", k.kind, k.condition, k.status, k.reason)
}

// readTexts reads the texts and adds those of package tunnel. It returns an error
// if a text is missing.
func readTexts(data []byte) (*conditionTexts, error) {
	t := &conditionTexts{}
	if err := yaml.UnmarshalStrict(data, t); err != nil {
		return nil, err
	}
	errs := []error{t.addCatalogue()}
	for key, r := range t.reasons() {
		if r.Meaning == "" || r.Remedy == "" {
			errs = append(errs, fmt.Errorf("%s: meaning or remedy missing", key))
		}
	}
	for _, row := range t.Events.Rows {
		if row.Meaning == "" || row.Remedy == "" {
			errs = append(errs, fmt.Errorf("event %s: meaning or remedy missing", row.Reason))
		}
	}
	return t, errors.Join(errs...)
}

// reasons returns the reasons of all conditions.
func (t *conditionTexts) reasons() map[reasonKey]reasonText {
	all := map[reasonKey]reasonText{}
	for _, k := range t.Kinds {
		for _, c := range k.Conditions {
			for _, r := range c.Reasons {
				all[reasonKey{k.Kind, c.Type, r.Status, r.Reason}] = r
			}
		}
	}
	return all
}
