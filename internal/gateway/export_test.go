package gateway

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// KeepsDecision reports whether the last Build kept the decision before and changed it.
func (m *Memory) KeepsDecision(before *Result) bool { return m.last != nil && m.last.Result == before }

// Dependencies counts the parts of a Snapshot that a Memory compares.
func Dependencies() int { return len(sameParts) + len(backendParts) + len(translationParts) }

// WithoutDependency calls f while memories do not notice changes of one part.
func WithoutDependency(i int, f func()) {
	parts, backends, translations := sameParts, backendParts, translationParts
	defer func() { sameParts, backendParts, translationParts = parts, backends, translations }()
	sameParts, backendParts, translationParts = slices.Clone(parts), slices.Clone(backends), slices.Clone(translations)
	switch {
	case i < len(parts):
		sameParts[i] = func(_, _ *Snapshot) bool { return true }
	case i < len(parts)+len(backends):
		backendParts[i-len(parts)] = func(map[types.NamespacedName]bool, *Snapshot, *Snapshot) {}
	default:
		translationParts[i-len(parts)-len(backends)] = func(*earlier, *decision) bool { return true }
	}
	f()
}
