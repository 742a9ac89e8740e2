package web

import (
	"maps"
	"slices"
)

// set is a set of texts.
type set map[string]bool

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }
