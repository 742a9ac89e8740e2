package ingress

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// align pairs the rules that two configurations have for one hostname. Rules with the
// same path and backend form one pairing, as far as their order in both configurations
// permits.
func align(last, desired []effectiveRule) pairedRules {
	paired := pairedRules{desired: byPath(desired)}
	positions := make(map[string]int, len(last)) // positions in last, by path
	for i := range last {
		positions[last[i].Path] = i
	}
	common := commonRules(last, desired, positions)
	next := 0
	addLast := func(until int) {
		for ; next < until; next++ {
			if !common[last[next].Path] {
				paired.pairings = append(paired.pairings, pairing{last: &last[next]})
			}
		}
	}
	for i := range desired {
		if !common[desired[i].Path] {
			paired.pairings = append(paired.pairings, pairing{desired: &desired[i]})
			continue
		}
		position := positions[desired[i].Path]
		addLast(position) // the rules that precede it
		paired.pairings = append(paired.pairings, pairing{last: &last[position], desired: &desired[i]})
	}
	addLast(len(last))
	markRepeated(paired.pairings)
	return paired
}

// markRepeated sets repeats in each pairing.
func markRepeated(pairings []pairing) {
	forwards, before := 0, map[string]int{} // forwards counts the rules of last with a backend; before has that count at each status, by path
	count := func(p pairing) bool {
		isForward := p.last != nil && p.last.effect.forwards()
		if isForward {
			forwards++
		}
		return isForward
	}
	for _, p := range pairings {
		if !count(p) && p.last != nil {
			before[p.last.Path] = forwards
		}
	}
	forwards = 0
	for i, p := range pairings {
		if !count(p) && p.last == nil {
			n, ok := before[p.desired.Path]
			pairings[i].repeats = ok && n <= forwards
		}
	}
}

func byPath(rules []effectiveRule) map[string]*effectiveRule {
	indexed := make(map[string]*effectiveRule, len(rules))
	for i := range rules {
		indexed[rules[i].Path] = &rules[i]
	}
	return indexed
}

// commonRules returns the paths of the rules that both configurations have with the same
// backend, and in the same order. Its time must not depend on pairs of rules, because
// tenants choose their order.
func commonRules(last, desired []effectiveRule, positions map[string]int) map[string]bool {
	var candidates []int // indexes in desired
	for i := range desired {
		if position, ok := positions[desired[i].Path]; ok && isCompatible(last[position], desired[i]) {
			candidates = append(candidates, i)
		}
	}
	kept := longestIncreasing(candidates, func(i int) int { return positions[desired[i].Path] })
	common := make(map[string]bool, len(kept))
	for _, i := range kept {
		common[desired[i].Path] = true
	}
	return common
}

// longestIncreasing returns a longest subsequence with increasing positions.
func longestIncreasing(sequence []int, position func(int) int) []int {
	var tails []int // for each length, the index at which the best subsequence ends
	previous := make([]int, len(sequence))
	for k, i := range sequence {
		n, _ := slices.BinarySearchFunc(tails, position(i), func(tail, target int) int { return position(sequence[tail]) - target })
		if previous[k] = -1; n > 0 {
			previous[k] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, k)
		}
		tails[n] = k
	}
	var longest []int
	if len(tails) > 0 {
		for k := tails[len(tails)-1]; k >= 0; k = previous[k] {
			longest = append(longest, sequence[k])
		}
	}
	slices.Reverse(longest)
	return longest
}

// isCompatible reports whether two rules with the same path lead to the same backend, or
// have the same status. One may verify the backend or the Access token more strictly.
func isCompatible(last, desired effectiveRule) bool {
	a, b := last.effect.backend(), desired.effect.backend()
	_, ok := meet(last.OriginRequest.Access, desired.OriginRequest.Access)
	a.verifies, b.verifies = true, true
	return a == b && (ok || !a.forwards())
}

// accessKey identifies the tokens that a rule requires. It is empty if the rule requires none.
func accessKey(a *provider.AccessSettings) string {
	if a == nil || !a.Required {
		return ""
	}
	tags := slices.Clone(a.AUDTag)
	slices.Sort(tags)
	return a.TeamName + "\n" + strings.Join(slices.Compact(tags), "\n")
}

// meet returns an Access that accepts the tokens that both accept, and false if there are
// none.
func meet(a, b *provider.AccessSettings) (*provider.AccessSettings, bool) {
	switch {
	case accessKey(a) == accessKey(b), accessKey(b) == "":
		return a, true
	case accessKey(a) == "":
		return b, true
	case a.TeamName != b.TeamName:
		return nil, false
	}
	both := *a
	both.AUDTag = slices.DeleteFunc(slices.Clone(a.AUDTag), func(tag string) bool { return !slices.Contains(b.AUDTag, tag) })
	return &both, len(both.AUDTag) > 0
}
