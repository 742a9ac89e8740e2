package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// contextLines are shown before and after every change.
const contextLines = 3

// unifiedLines returns the unified diff that makes b of a, without headers.
//
// Of a rule that both have unchanged, all lines are matched first, and single
// lines in between them: a diff of lines alone tears rules apart, because many of
// their lines are alike. It takes time in proportion to the documents, however
// much is changed, and not to the product of their lengths.
func unifiedLines(a, b []string) string {
	m := matching{
		a: [][]string{inBlocks(a), a}, b: [][]string{inBlocks(b), b}, partner: make([]int, len(a)),
	}
	for i := range m.partner {
		m.partner[i] = -1
	}
	m.match(span{0, len(a)}, span{0, len(b)}, 0)
	return hunks(edits(a, b, m.partner))
}

// inBlocks returns for every line of a document what is the same exactly for
// the same line of the same block: a rule, or a top-level field.
func inBlocks(lines []string) []string {
	keys := make([]string, 0, len(lines))
	for begin := 0; begin < len(lines); begin = len(keys) {
		end := begin + 1
		for end < len(lines) && strings.HasPrefix(lines[end], " ") {
			end++
		}
		block := strings.Join(lines[begin:end], "")
		for i := range end - begin {
			keys = append(keys, fmt.Sprint(i, " ", block))
		}
	}
	return keys
}

// matching finds the lines that two texts have in common, in the same order. It
// has several forms of each line, the strictest first.
type matching struct {
	a, b [][]string
	// partner is for each line of a the line of b that it is, or -1.
	partner []int
}

type span struct{ from, to int }

// match finds partners within two spans.
func (m *matching) match(in, of span, level int) {
	if level == len(m.a) {
		return
	}
	a, b := m.a[level], m.b[level]
	for ; in.from < in.to && of.from < of.to && a[in.from] == b[of.from]; in.from, of.from = in.from+1, of.from+1 {
		m.partner[in.from] = of.from
	}
	for ; in.from < in.to && of.from < of.to && a[in.to-1] == b[of.to-1]; in.to, of.to = in.to-1, of.to-1 {
		m.partner[in.to-1] = of.to - 1
	}
	anchors := ascending(unique(a, b, in, of))
	if len(anchors) == 0 {
		m.match(in, of, level+1)
		return
	}
	for _, anchor := range anchors {
		m.partner[anchor[0]] = anchor[1]
		m.match(span{in.from, anchor[0]}, span{of.from, anchor[1]}, level)
		in.from, of.from = anchor[0]+1, anchor[1]+1
	}
	m.match(in, of, level)
}

// unique returns the lines that stand exactly once in either span, as pairs of
// their places, in the order of a.
func unique(a, b []string, in, of span) [][2]int {
	type places struct{ inA, inB, at int }
	seen := map[string]places{}
	for i := in.from; i < in.to; i++ {
		p := seen[a[i]]
		p.inA++
		seen[a[i]] = p
	}
	for j := of.from; j < of.to; j++ {
		p := seen[b[j]]
		p.inB, p.at = p.inB+1, j
		seen[b[j]] = p
	}
	var pairs [][2]int
	for i := in.from; i < in.to; i++ {
		if p := seen[a[i]]; p.inA == 1 && p.inB == 1 {
			pairs = append(pairs, [2]int{i, p.at})
		}
	}
	return pairs
}

// ascending returns as many of the pairs as have their second places in order.
func ascending(pairs [][2]int) [][2]int {
	// ends[n] is the pair with the smallest second place that n others can stand
	// before; before is the last of those.
	var ends []int
	before := make([]int, len(pairs))
	for i, pair := range pairs {
		n, _ := slices.BinarySearchFunc(ends, pair[1], func(end, place int) int { return cmp.Compare(pairs[end][1], place) })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	chain := make([][2]int, len(ends))
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
		chain[n] = pairs[i]
	}
	return chain
}

// edit is a line of the diff: kept (' '), taken out ('-') or put in ('+').
type edit struct {
	kind byte
	line string
}

func edits(a, b []string, partner []int) []edit {
	all := make([]edit, 0, len(a)+len(b))
	j := 0
	for i, line := range a {
		if partner[i] < 0 {
			all = append(all, edit{'-', line})
			continue
		}
		for ; j < partner[i]; j++ {
			all = append(all, edit{'+', b[j]})
		}
		all = append(all, edit{' ', line})
		j++
	}
	for ; j < len(b); j++ {
		all = append(all, edit{'+', b[j]})
	}
	return all
}

// hunks writes the changes with the lines around them. Changes whose lines
// around them meet are in one hunk.
func hunks(all []edit) string {
	var out strings.Builder
	lineA, lineB := 0, 0 // before the edit at done
	for done, next := 0, 0; ; {
		change := slices.IndexFunc(all[next:], func(e edit) bool { return e.kind != ' ' })
		if change < 0 {
			return out.String()
		}
		begin := max(done, next+change-contextLines)
		end := hunkEnd(all, next+change)
		skipped := begin - done
		countA, countB := counts(all[begin:end])
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", extent(lineA+skipped, countA), extent(lineB+skipped, countB))
		for _, e := range all[begin:end] {
			out.WriteByte(e.kind)
			out.WriteString(e.line)
		}
		lineA, lineB = lineA+skipped+countA, lineB+skipped+countB
		done, next = end, end
	}
}

// hunkEnd returns where the hunk ends that has the change.
func hunkEnd(all []edit, change int) int {
	last := change
	for i := change; i < len(all) && i-last <= 2*contextLines+1; i++ {
		if all[i].kind != ' ' {
			last = i
		}
	}
	return min(last+1+contextLines, len(all))
}

// counts returns how many lines the edits have of either text.
func counts(all []edit) (a, b int) {
	for _, e := range all {
		if e.kind != '+' {
			a++
		}
		if e.kind != '-' {
			b++
		}
	}
	return a, b
}

// extent is the place of a hunk in one of the texts, as patch reads it: one
// without lines is named by the line before it.
func extent(before, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	default:
		return fmt.Sprintf("%d,%d", before+1, count)
	}
}
