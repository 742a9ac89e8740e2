package tunnel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// ContributionWindow is how long [Contributions] counts a write.
const ContributionWindow = 10 * time.Minute

// maxNamespaces limits the namespaces in an event.
const maxNamespaces = 3

// Contributions contains the recent writes to a tunnel's configuration, with the
// namespaces whose objects had changed.
type Contributions struct{ writes []contribution }

type contribution struct {
	at         Instant
	namespaces []string
}

// Add returns the Contributions after a write. Writes that are older than the window are
// removed.
func (c Contributions) Add(uptime time.Duration, namespaces []string) Contributions {
	return Contributions{writes: append(c.recent(uptime), contribution{At(uptime), namespaces})}
}

// recent returns a copy of the writes within the window.
func (c Contributions) recent(uptime time.Duration) []contribution {
	return slices.DeleteFunc(slices.Clone(c.writes), func(w contribution) bool { return w.at.Since(uptime) >= ContributionWindow })
}

// Event returns the event that changes wait for a token. It names the namespaces that
// contributed to most of the recent writes.
func (c Contributions) Event(uptime time.Duration, l UpdateLimit) *Event {
	recent := c.recent(uptime)
	message := fmt.Sprintf("The controller wrote the configuration of the tunnel %d times within %d minutes, so limits.configurationUpdates now delays each change by up to %s.",
		len(recent), int(ContributionWindow.Minutes()), l.Interval)
	if namespaces := describeContributors(recent); namespaces != "" {
		message += " Namespaces whose objects changed: " + namespaces + "."
	}
	return newEvent(conditions.EventConfigurationThrottled, "%s", message)
}

// describeContributors lists the namespaces and how many writes each contributed to, in
// descending order.
func describeContributors(writes []contribution) string {
	counts := map[string]int{}
	for _, w := range writes {
		for _, namespace := range w.namespaces {
			counts[namespace]++
		}
	}
	namespaces := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, namespace := range namespaces {
		if i == maxNamespaces {
			parts = append(parts, fmt.Sprintf("and %d more", len(namespaces)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", namespace, counts[namespace]))
	}
	return strings.Join(parts, ", ")
}
