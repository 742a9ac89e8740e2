package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// accessUnit is an application, or an entry with AUD tags: what is protected or closed
// together when the rules for Access exceed their limit.
type accessUnit struct {
	// created is when the demanding object was created, and name distinguishes units.
	created time.Time
	name    string
	// consumer has a limit for its number of units; "" has none.
	consumer string
	// hostnames are the hostnames of the table that the unit protects.
	hostnames []string
}

// limitRules closes the youngest demands, and those with AUD tags too, if the table would
// need more than [routing.MaxAccessRules] rules with Envoy once each demanded hostname is
// protected. Rules for open hostnames below a demand count, and go with it. It sets
// Demand.Invalid, and returns the other hostnames that are closed.
func (t *accessTable) limitRules(d *access.Demanded) []string {
	if len(d.Demands) == 0 {
		return nil // entries with AUD tags alone stay below the limit
	}
	hostnames, states := slices.Collect(maps.Keys(t.decided)), t.protectedStates(d)
	exceeds := func() bool { return len(t.newAccess(states).Rules(hostnames)) > routing.MaxAccessRules }
	if !exceeds() {
		return nil
	}
	units := t.accessUnits(d)
	enough := 1 + sort.Search(len(units)-1, func(last int) bool {
		for i, unit := range units {
			t.setStates(states, d, unit, i <= last)
		}
		return !exceeds()
	})
	var byHand []string
	for _, hostname := range hostnamesOf(units[:enough]) {
		demand, isManaged := d.Demands[hostname]
		if !isManaged {
			byHand = append(byHand, hostname)
			continue
		}
		demand.Invalid = accessRulesProblem()
		d.Demands[hostname] = demand
	}
	return byHand
}

// closeEnding closes the hostnames whose demand has gone and that are still protected, if
// they and the demanded hostnames need too many rules.
func (t *accessTable) closeEnding(states map[string]access.State) {
	var ending []string
	for hostname, state := range states {
		if _, isDemanded := t.Demanded.Demands[hostname]; !isDemanded && state.Status == access.Protected {
			ending = append(ending, hostname)
		}
	}
	if len(ending) == 0 || len(t.newAccess(states).Rules(slices.Collect(maps.Keys(t.decided)))) <= routing.MaxAccessRules {
		return // nearly always
	}
	for _, hostname := range ending {
		state := states[hostname]
		state.Status = access.Closed
		states[hostname] = state
	}
}

func accessRulesProblem() *Problem {
	return &Problem{Reason: conditions.ReasonLimitExceeded, Message: fmt.Sprintf(
		"the tunnel can have %d rules for Access, and older demands need them. Protect several hostnames with one wildcard, or move the hostname to another Gateway.",
		routing.MaxAccessRules)}
}

// protectedStates returns the states in which each demand that can be fulfilled is.
func (t *accessTable) protectedStates(d *access.Demanded) map[string]access.State {
	states := make(map[string]access.State, len(d.Demands))
	for hostname := range d.Demands {
		states[hostname] = protectedState(d.Demands[hostname])
	}
	return states
}

// protectedState returns the state of a hostname with its application.
func protectedState(d access.Demand) access.State {
	if d.Invalid != nil || !d.Permitted {
		return access.State{Status: access.Closed}
	}
	return access.State{Status: access.Protected, AUDTags: []string{d.Hostname}}
}

// setStates closes the hostnames of a unit, or gives them the states that they had.
func (t *accessTable) setStates(states map[string]access.State, d *access.Demanded, unit accessUnit, isClosed bool) {
	for _, hostname := range unit.hostnames {
		demand, isManaged := d.Demands[hostname]
		switch {
		case isClosed:
			states[hostname] = access.State{Status: access.Closed}
		case isManaged:
			states[hostname] = protectedState(demand)
		default:
			delete(states, hostname)
		}
	}
}

// accessUnits returns the units, the youngest first. A consumer's units beyond
// [access.NamespaceApplications] come before all others, and so close no hostname of others.
func (t *accessTable) accessUnits(d *access.Demanded) []accessUnit {
	byName := map[string]*accessUnit{}
	add := func(hostname, name, consumer string, created time.Time) {
		if byName[name] == nil {
			byName[name] = &accessUnit{created: created, name: name, consumer: consumer}
		}
		byName[name].hostnames = append(byName[name].hostnames, hostname)
	}
	for hostname, demand := range d.Demands {
		add(hostname, demand.Object+"/"+demand.Hostname, t.consumer(&demand), demand.Created)
	}
	for _, hostname := range d.ByHand {
		decided := t.decided[hostname]
		object, created := t.entryObject(decided.level)
		add(hostname, object+"/"+decided.entry, "", created)
	}
	units := make([]accessUnit, 0, len(byName))
	for _, unit := range byName {
		units = append(units, *unit)
	}
	slices.SortFunc(units, func(a, b accessUnit) int {
		return cmp.Or(b.created.Compare(a.created), strings.Compare(b.name, a.name))
	})
	return excessFirst(units)
}

// consumer returns the namespace that chooses how many units there are: the one for which the
// demand counts, which can get no more applications than the limit. For a demand of the
// GatewayClass, it is the namespace whose listener claims the hostname, unless that is the
// Gateway's own.
func (t *accessTable) consumer(d *access.Demand) string {
	if d.Namespace != "" {
		return d.Namespace
	}
	if claimant := t.claimant(d.Hostname).owner.Namespace; claimant != t.gateway.Namespace {
		return "GatewayClass/" + claimant
	}
	return ""
}

// excessFirst returns the units with those first that a consumer has beyond its limit. The
// order stays otherwise: the youngest first.
func excessFirst(units []accessUnit) []accessUnit {
	var excess, others []accessUnit
	used := map[string]int{}
	for _, unit := range slices.Backward(units) {
		used[unit.consumer]++
		if unit.consumer != "" && used[unit.consumer] > access.NamespaceApplications {
			excess = append(excess, unit)
		} else {
			others = append(others, unit)
		}
	}
	slices.Reverse(excess)
	slices.Reverse(others)
	return append(excess, others...)
}

func hostnamesOf(units []accessUnit) []string {
	var hostnames []string
	for _, unit := range units {
		hostnames = append(hostnames, unit.hostnames...)
	}
	slices.Sort(hostnames)
	return hostnames
}
