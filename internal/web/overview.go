package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// overviewContent is what templates/overview.html shows.
type overviewContent struct {
	Problems     []problemGroup
	ProblemPart  part
	Remarks      []plan.Remark
	RemarkPart   part
	Warnings     []string
	Unknown      []string
	Reported     []plan.ReportedStatus
	ReportedPart part
	Gateways     []gatewayRow
	Unserved     []plan.UnservedGateway
	// NoGateway is a message if the controller serves none; otherwise empty.
	NoGateway string
}

// problemGroup is a problem with all objects that have it.
type problemGroup struct {
	// Condition is its type, or "listener NAME".
	Condition, Reason, Message string
	// Objects are the first objects, and Others counts the others.
	Objects []plan.Owner
	Others  int
}

// gatewayRow is a Gateway in the overview.
type gatewayRow struct {
	plan.GatewaySummary
	// States are its Hostnames' states, the most frequent first.
	Hostnames int
	States    []stateCount
}

// ID returns the Gateway's "namespace/name".
func (r *gatewayRow) ID() string { return r.Namespace + "/" + r.Name }

type stateCount struct {
	State string
	Count int
}

// overview shows the problems, and each Gateway.
func overview(v *visit) (any, error) {
	groups, remarks := groupProblems(slices.Concat(v.Plan.Problems(), v.Plan.ListenerProblems())), v.Plan.Remarks()
	c := overviewContent{
		ProblemPart: v.part(len(groups)), RemarkPart: v.part(len(remarks)), ReportedPart: v.part(len(v.Plan.Reported)),
		Warnings: v.Warnings, Unknown: v.Plan.Unknown, Unserved: v.Plan.UnservedGateways(), NoGateway: v.Plan.NoGateway(),
	}
	c.Problems, c.Remarks, c.Reported = groups[:c.ProblemPart.Shown], remarks[:c.RemarkPart.Shown], v.Plan.Reported[:c.ReportedPart.Shown]
	counts := countStates(v.Hostnames())
	for _, summary := range v.Plan.Summaries() {
		row := gatewayRow{GatewaySummary: summary}
		row.States = counts[row.ID()]
		for _, state := range row.States {
			row.Hostnames += state.Count
		}
		c.Gateways = append(c.Gateways, row)
	}
	return c, nil
}

// groupProblems returns each problem once, ordered by its first object.
func groupProblems(problems []plan.Problem) []problemGroup {
	const shownObjects = 10
	type text struct{ condition, reason, message string }
	var groups []problemGroup
	index := map[text]int{}
	for _, p := range problems {
		key := text{p.Condition, p.Reason, p.Message}
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, problemGroup{Condition: p.Condition, Reason: p.Reason, Message: p.Message})
		}
		if len(groups[i].Objects) < shownObjects {
			groups[i].Objects = append(groups[i].Objects, p.Owner)
		} else {
			groups[i].Others++
		}
	}
	return groups
}

// countStates counts each Gateway's hostnames by state.
func countStates(h *plan.Hostnames) map[string][]stateCount {
	counts := map[string]map[string]int{}
	for i := range h.Rows {
		row := &h.Rows[i]
		if counts[row.Gateway] == nil {
			counts[row.Gateway] = map[string]int{}
		}
		counts[row.Gateway][row.State()]++
	}
	all := map[string][]stateCount{}
	for gateway, states := range counts {
		all[gateway] = sortedStates(states)
	}
	return all
}

func sortedStates(states map[string]int) []stateCount {
	var all []stateCount
	for state, count := range states {
		all = append(all, stateCount{state, count})
	}
	slices.SortFunc(all, func(a, b stateCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.State, b.State))
	})
	return all
}
