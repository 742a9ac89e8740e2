package gateway_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// verdictLine matches a comment in a golden case that says what the account contains for a
// hostname: a verdict of package access. With the reason Protected, the application is as
// its demand wants it.
var verdictLine = regexp.MustCompile(`(?m)^# verdict: (\S+) (\w+)(?:: (.+))?$`)

// verdictReasons are the reasons that a verdict line can have.
var verdictReasons = []conditions.Reason{
	conditions.ReasonProtected, conditions.ReasonPending, conditions.ReasonPolicyInvalid, conditions.ReasonApplicationExists, conditions.ReasonOverridden,
	conditions.ReasonLimitExceeded, conditions.ReasonContested, conditions.ReasonSettingsConflict, conditions.ReasonForbidden,
}

// verdictsOf returns the verdicts in the comments of a golden case.
func verdictsOf(t *testing.T, input string) access.Verdicts {
	t.Helper()
	content, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	lines := verdictLine.FindAllStringSubmatch(string(content), -1)
	if count := bytes.Count(content, []byte("\n# verdict")); count != len(lines) {
		t.Fatalf("%s: %d of %d verdicts are not valid", input, count-len(lines), count)
	}
	verdicts := access.Verdicts{}
	for _, line := range lines {
		verdicts[line[1]] = access.Verdict{Reason: verdictReason(t, line[2]), Message: line[3]}
	}
	return verdicts
}

// knownApplications returns what is known about the account if the verdicts are those about
// the Gateway's demands.
func knownApplications(result *gateway.Result, verdicts access.Verdicts) access.Known {
	k := access.Known{Read: len(verdicts) > 0, Verdicts: access.Verdicts{}, InEffect: routing.Access{}, InEffectKnown: true}
	demands := result.AccessDemands()
	for i := range demands {
		verdict, ok := verdicts[demands[i].Hostname]
		if !ok {
			continue
		}
		if verdict.Reason == conditions.ReasonProtected {
			verdict.Application = wantedApplication(result, &demands[i])
		}
		k.Verdicts[demands[i].Hostname] = verdict
	}
	return k
}

func verdictReason(t *testing.T, name string) conditions.Reason {
	t.Helper()
	i := slices.IndexFunc(verdictReasons, func(r conditions.Reason) bool { return r.String() == name })
	if i < 0 {
		t.Fatalf("unknown reason %s", name)
	}
	return verdictReasons[i]
}

// wantedApplication returns the application that the demand wants.
func wantedApplication(result *gateway.Result, demand *access.Demand) *access.Application {
	last := provider.Application{
		Domains: []string{demand.Hostname}, SessionDuration: demand.SessionDuration, BindingCookie: strings.HasPrefix(demand.Hostname, "*"),
	}
	for _, name := range demand.Policies {
		last.Policies = append(last.Policies, provider.AccessPolicyID(result.Applications.Catalogue[name]))
	}
	return &access.Application{
		Hostname: demand.Hostname, TeamName: result.Applications.TeamName, AUDTag: "aud-of-" + demand.Hostname, Decider: demand.DeciderKey(),
		Policies: demand.Policies, SessionDuration: demand.SessionDuration, Last: last,
	}
}

// writeAccess writes the applications that the Gateway needs, and the states of hostnames.
func writeAccess(w *bytes.Buffer, result *gateway.Result) {
	if demands := result.AccessDemands(); len(demands) > 0 {
		fmt.Fprintln(w, "applications:")
		for i := range demands {
			d := &demands[i]
			permitted := ""
			if !d.Permitted {
				permitted = ", not permitted"
			}
			fmt.Fprintf(w, "  %q: %q\n", d.Hostname, fmt.Sprintf("policies %v for %s of %s, counts for namespace %q%s", d.Policies, d.DeciderKey(), d.Object, d.Namespace, permitted))
		}
	}
	if len(result.AccessStates) > 0 {
		fmt.Fprintln(w, "access:")
		for _, hostname := range slices.Sorted(maps.Keys(result.AccessStates)) {
			state := result.AccessStates[hostname]
			fmt.Fprintf(w, "  %q: %q\n", hostname, strings.TrimSpace(fmt.Sprintf("%s %s", state.Status, state.Reason)))
		}
	}
}
