package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// addCatalogues adds to the texts what the catalogues of package tunnel say.
func (t *texts) addCatalogues() error {
	described := map[string]tunnel.Entry{}
	for _, entry := range slices.Concat(tunnel.Catalogue, tunnel.States) {
		described[string(entry.Reason)] = entry
	}
	missing := map[string]bool{}
	for _, state := range tunnel.States {
		missing[string(state.Reason)] = true
	}
	for i := range t.Kinds {
		if t.Kinds[i].Catalogued {
			t.Kinds[i].describe(described, missing)
		}
	}
	var errs []error
	for _, reason := range slices.Sorted(maps.Keys(missing)) {
		errs = append(errs, fmt.Errorf("the reason %s of package tunnel is in no condition", reason))
	}
	return errors.Join(append(errs, t.addProblems(), t.addEvents())...)
}

// describe fills in the texts of the reasons that have none, and removes the
// reasons of the kind from missing.
func (k *kind) describe(described map[string]tunnel.Entry, missing map[string]bool) {
	for i := range k.Conditions {
		for j := range k.Conditions[i].Reasons {
			r := &k.Conditions[i].Reasons[j]
			delete(missing, r.Reason)
			r.Unseen = "the cases of package tunnel have it"
			if r.Means == "" {
				r.Means, r.Do = described[r.Reason].Meaning, described[r.Reason].Remedy
			}
		}
	}
}

func (t *texts) addProblems() error {
	left := maps.Clone(t.Problems.More)
	for _, entry := range tunnel.Catalogue {
		reason := string(entry.Reason)
		delete(left, reason)
		t.Problems.Rows = append(t.Problems.Rows, problem{
			Reason: reason, Means: entry.Meaning, Do: withLink(entry.Remedy, t.Problems.More[reason]), NeedsPerson: entry.NeedsPerson,
		})
	}
	return unused("problem", left)
}

func (t *texts) addEvents() error {
	left := maps.Clone(t.Events.More)
	for _, entry := range tunnel.Events {
		reason := string(entry.Reason)
		delete(left, reason)
		t.Events.Rows = append(t.Events.Rows, eventRow{
			Type: eventType(entry.Warning), Reason: reason, On: "Gateway or Tunnel",
			Means: entry.Meaning, Do: withLink(entry.Remedy, t.Events.More[reason]),
		})
	}
	return unused("event", left)
}

// unused names the reasons that have a link and are not in the catalogue.
func unused(what string, left map[string]string) error {
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("package tunnel has no %s %s", what, strings.Join(slices.Sorted(maps.Keys(left)), ", "))
}

// withLink adds a link to a text.
func withLink(text, link string) string {
	if link == "" {
		return text
	}
	return text + " See " + link + "."
}
