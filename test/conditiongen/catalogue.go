package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// catalogue is what catalogue.yaml contains.
type catalogue struct {
	// Types are the condition types on Gateway API objects, and TunnelTypes the condition
	// types on a Tunnel.
	Types       []typeEntry    `json:"types"`
	TunnelTypes []typeEntry    `json:"tunnelTypes"`
	Kinds       []kindEntry    `json:"kinds"`
	Problems    problemSection `json:"problems"`
	Events      eventSection   `json:"events"`
}

// typeEntry describes a condition type.
type typeEntry struct {
	Name string `json:"name"`
	// Expected is the status without a problem; "" means True.
	Expected string `json:"expected"`
	// Event is whether the controller emits an event when the condition changes, and
	// Optional whether it removes a condition that it no longer reports.
	Event    bool `json:"event"`
	Optional bool `json:"optional"`
}

// kindEntry describes the conditions on an object or on a part, such as a listener.
type kindEntry struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	// Short starts the condition headings. Other pages link to these headings.
	Short string `json:"short"`
	// Variable names the variable with the kind's condition types; "" if the code needs
	// none.
	Variable string `json:"variable"`
	Intro    string `json:"intro"`
	// NotGolden explains why no golden case has a reason for the kind; "" if cases have
	// them.
	NotGolden  string           `json:"notGolden"`
	Conditions []conditionEntry `json:"conditions"`
}

// conditionEntry describes a condition type on one kind.
type conditionEntry struct {
	Type    string        `json:"type"`
	About   string        `json:"about"`
	Reasons []reasonEntry `json:"reasons"`
	// Problems states which tunnel problems are also reasons for the condition; "" if
	// none is.
	Problems string `json:"problems"`
}

// reasonEntry describes a status and reason that a condition can have. A reason without
// meaning and remedy takes them from the problem.
type reasonEntry struct {
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

// problemSection describes the tunnel problems.
type problemSection struct {
	Intro string         `json:"intro"`
	Rows  []problemEntry `json:"rows"`
}

// problemEntry describes one tunnel problem.
type problemEntry struct {
	Reason         string `json:"reason"`
	RequiresAction bool   `json:"requiresAction"`
	Meaning        string `json:"meaning"`
	Remedy         string `json:"remedy"`
	// See is a link that the page appends to the remedy.
	See string `json:"see"`
}

// eventSection describes the events.
type eventSection struct {
	Intro string       `json:"intro"`
	Rows  []eventEntry `json:"rows"`
}

// eventEntry describes an event.
type eventEntry struct {
	// Type is Normal or Warning.
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// Object is the kind that has the event.
	Object  string `json:"object"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
	// See is a link that the page appends to the remedy.
	See string `json:"see"`
}

// reasonKey identifies one reason for one condition.
type reasonKey struct{ kind, condition, status, reason string }

func (k reasonKey) String() string {
	return fmt.Sprintf("%s %s: %s %s", k.kind, k.condition, k.status, k.reason)
}

// readCatalogue reads the catalogue. It returns an error if a text is missing, or an entry is
// not valid.
func readCatalogue(data []byte) (*catalogue, error) {
	c := &catalogue{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, err
	}
	c.complete()
	errs := []error{c.checkTypes()}
	for key, r := range c.reasons() {
		errs = append(errs, checkEntry(key.String(), r.Reason, r.Meaning, r.Remedy))
	}
	for _, p := range c.Problems.Rows {
		errs = append(errs, checkEntry("problem "+p.Reason, p.Reason, p.Meaning, p.Remedy))
		if p.RequiresAction && (p.Remedy == "Nothing." || p.Remedy == "Wait.") {
			errs = append(errs, fmt.Errorf("problem %s: a user must act, but the remedy describes no action", p.Reason))
		}
	}
	for _, e := range c.Events.Rows {
		errs = append(errs, checkEntry("event "+e.Reason, e.Reason, e.Meaning, e.Remedy))
		if e.Type != "Normal" && e.Type != "Warning" {
			errs = append(errs, fmt.Errorf("event %s: the type must be Normal or Warning, got %q", e.Reason, e.Type))
		}
	}
	return c, errors.Join(errs...)
}

// complete sets the fields that an entry takes from its problem or its kind.
func (c *catalogue) complete() {
	problems := map[string]problemEntry{}
	for _, p := range c.Problems.Rows {
		problems[p.Reason] = p
	}
	for _, k := range c.Kinds {
		for _, condition := range k.Conditions {
			for i := range condition.Reasons {
				r := &condition.Reasons[i]
				if r.Meaning == "" && r.Remedy == "" {
					r.Meaning, r.Remedy = problems[r.Reason].Meaning, problems[r.Reason].Remedy
				}
				if k.NotGolden != "" {
					r.NotGolden = k.NotGolden
				}
			}
		}
	}
}

// validReason matches the reasons that this controller uses. The API server accepts more.
var validReason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// checkEntry returns an error if the reason is not valid or its texts are not sentences.
func checkEntry(name, reason, meaning, remedy string) error {
	switch {
	case meaning == "" || remedy == "":
		return fmt.Errorf("%s: meaning or remedy missing", name)
	case !validReason.MatchString(reason):
		return fmt.Errorf("%s: not a valid reason", name)
	case !strings.HasSuffix(meaning, ".") || !strings.HasSuffix(remedy, "."):
		return fmt.Errorf("%s: meaning or remedy does not end with a period", name)
	default:
		return nil
	}
}

// checkTypes returns an error for each condition whose type is not listed, and for each
// listed type that no kind has.
func (c *catalogue) checkTypes() error {
	var errs []error
	unused := map[string]bool{}
	for _, t := range append(c.Types, c.TunnelTypes...) {
		unused[t.Name] = true
	}
	known := map[string]bool{}
	for _, k := range c.Kinds {
		types := c.Types
		if k.Kind == "Tunnel" {
			types = c.TunnelTypes
		}
		clear(known)
		for _, t := range types {
			known[t.Name] = true
		}
		for _, condition := range k.Conditions {
			if delete(unused, condition.Type); !known[condition.Type] {
				errs = append(errs, fmt.Errorf("%s %s: the type is not in the list of types", k.Kind, condition.Type))
			}
		}
	}
	for name := range unused {
		errs = append(errs, fmt.Errorf("type %s: no kind has it", name))
	}
	return errors.Join(errs...)
}

// reasons returns the reasons for all conditions.
func (c *catalogue) reasons() map[reasonKey]reasonEntry {
	all := map[reasonKey]reasonEntry{}
	for _, k := range c.Kinds {
		for _, condition := range k.Conditions {
			for _, r := range condition.Reasons {
				all[reasonKey{k.Kind, condition.Type, r.Status, r.Reason}] = r
			}
		}
	}
	return all
}
