package gateway

import "k8s.io/apimachinery/pkg/types"

// KeepsDecision reports whether the last Build kept the decision before and changed it.
func (m *Memory) KeepsDecision(before *Result) bool { return m.last != nil && m.last.Result == before }

// Dependencies counts the parts of a Snapshot that a Memory compares.
func Dependencies() int { return len(sameParts) + len(backendParts) }

// WithoutDependency calls f while memories do not notice changes of one part.
func WithoutDependency(i int, f func()) {
	parts, backends := sameParts, backendParts
	defer func() { sameParts, backendParts = parts, backends }()
	sameParts, backendParts = append(parts[:0:0], parts...), append(backends[:0:0], backends...)
	if i < len(parts) {
		sameParts[i] = func(_, _ *Snapshot) bool { return true }
	} else {
		backendParts[i-len(parts)] = func(map[types.NamespacedName]bool, *Snapshot, *Snapshot) {}
	}
	f()
}
