package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// addCatalogue adds the texts of package tunnel: the reasons of the conditions of
// a Tunnel, the problems and the events.
func (t *conditionTexts) addCatalogue() error {
	entries := map[string]tunnel.Entry{}
	for _, entry := range slices.Concat(tunnel.Catalogue, tunnel.States) {
		entries[string(entry.Reason)] = entry
	}
	missing := map[string]bool{}
	for _, state := range tunnel.States {
		missing[string(state.Reason)] = true
	}
	for i := range t.Kinds {
		if t.Kinds[i].Catalogued {
			t.Kinds[i].fill(entries, missing)
		}
	}
	var errs []error
	for _, reason := range slices.Sorted(maps.Keys(missing)) {
		errs = append(errs, fmt.Errorf("no condition has the reason %s of package tunnel", reason))
	}
	return errors.Join(append(errs, t.addProblems(), t.addEvents())...)
}

// fill sets the texts of the reasons that have none, and removes the reasons of
// the kind from missing.
func (k *kindTexts) fill(entries map[string]tunnel.Entry, missing map[string]bool) {
	for i := range k.Conditions {
		for j := range k.Conditions[i].Reasons {
			r := &k.Conditions[i].Reasons[j]
			delete(missing, r.Reason)
			r.NotGolden = "the golden cases of package tunnel cover it"
			if r.Meaning == "" {
				r.Meaning, r.Remedy = entries[r.Reason].Meaning, entries[r.Reason].Remedy
			}
		}
	}
}

func (t *conditionTexts) addProblems() error {
	unused := maps.Clone(t.Problems.Links)
	for _, entry := range tunnel.Catalogue {
		reason := string(entry.Reason)
		delete(unused, reason)
		entry.Remedy = withLink(entry.Remedy, t.Problems.Links[reason])
		t.Problems.rows = append(t.Problems.rows, entry)
	}
	return unusedLinks("problem", unused)
}

func (t *conditionTexts) addEvents() error {
	unused := maps.Clone(t.Events.Links)
	for _, entry := range tunnel.Events {
		reason := string(entry.Reason)
		delete(unused, reason)
		t.Events.Rows = append(t.Events.Rows, eventText{
			Type: eventType(entry.Warning), Reason: reason, Object: "Gateway or Tunnel",
			Meaning: entry.Meaning, Remedy: withLink(entry.Remedy, t.Events.Links[reason]),
		})
	}
	return unusedLinks("event", unused)
}

// eventType returns the type of an event.
func eventType(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// unusedLinks returns an error if the map of links is not empty. Its keys are
// reasons that package tunnel does not have.
func unusedLinks(name string, links map[string]string) error {
	if len(links) == 0 {
		return nil
	}
	return fmt.Errorf("package tunnel has no %s %s", name, strings.Join(slices.Sorted(maps.Keys(links)), ", "))
}

// withLink appends a link to a text.
func withLink(text, link string) string {
	if link == "" {
		return text
	}
	return text + " See " + link + "."
}
