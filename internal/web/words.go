package web

import (
	"slices"
	"strconv"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// tableFunctions are the functions in the templates with tables.
var tableFunctions = map[string]any{"count": count, "next": next, "choice": newChoice, "first": firstListeners, "others": others}

// count returns a number with a noun, such as "1 hostname" or "2 hostnames". other is the
// plural if it has another form than the singular with an s.
func count(n int, noun string, other ...string) string {
	switch {
	case n == 1:
	case len(other) > 0:
		noun = other[0]
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// next returns the number after an index.
func next(i int) int { return i + 1 }

// choice is a select element.
type choice struct {
	Name, Label, Chosen string
	Options             []string
}

// newChoice returns the select element for the parameter name. If the chosen option is not
// among the others, it becomes one, so that the page shows what its URL selects.
func newChoice(name, label, chosen string, options []string) choice {
	c := choice{name, label, chosen, options}
	if chosen != "" && !slices.Contains(options, chosen) {
		c.Options = append([]string{chosen}, options...)
	}
	return c
}

// shownListeners is how many listeners a hostname's row shows.
const shownListeners = 4

func firstListeners(all []plan.HostnameListener) []plan.HostnameListener {
	return all[:min(len(all), shownListeners)]
}

// others returns how many listeners a row does not show.
func others(all []plan.HostnameListener) int { return max(0, len(all)-shownListeners) }
