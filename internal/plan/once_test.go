package plan_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// repeatedMessages returns the messages that occur in more than one line about an object.
// Such a line consists of the object, the reason and the message.
func repeatedMessages(text string) []string {
	var seen, repeated []string
	for line := range strings.Lines(text) {
		subject, rest, found := strings.Cut(line, ": ")
		if _, reason, _ := strings.Cut(subject, "/"); !found || reason == "" || strings.HasPrefix(subject, " ") {
			continue
		}
		reason, message, found := strings.Cut(strings.TrimSpace(rest), ": ")
		if !found || strings.Contains(reason, " ") {
			continue
		}
		for _, other := range seen {
			if strings.Contains(other, message) || strings.Contains(message, other) {
				repeated = append(repeated, message)
			}
		}
		seen = append(seen, message)
	}
	return repeated
}

func TestAMessageStandsOnce(t *testing.T) {
	const manifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: outside, namespace: team}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners: [{name: a, hostname: set.example.com, port: 80, protocol: HTTP}, {name: b, hostname: "*.set.example.com", port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: outside, namespace: team}
spec: {parentRefs: [{kind: ListenerSet, name: outside}], rules: [{backendRefs: [{name: web, port: 80}]}]}
`
	p := planOf(t, strings.Replace(wildcardGateway, "from: All", "from: Same", 1), manifests, webService,
		webRoute("one", "[a.example.org]", webRule), webRoute("two", "[a.example.org]", webRule))
	wantLines(t, table(t, p), []string{
		`ListenerSet team/outside: NotAllowed: Gateway infra/shared does not allow ListenerSets from namespace "team": spec.allowedListeners.namespaces allows only namespace "infra" (from: Same). Ask the Gateway's owner to allow the namespace.`,
		`HTTPRoute team/outside on ListenerSet team/outside: NoMatchingParent: ListenerSet team/outside is not allowed.`,
		`HTTPRoute team/one, HTTPRoute team/two on Gateway infra/shared: NoMatchingListenerHostname: None of the route's hostnames (a.example.org) intersects with a listener hostname: "wild" (*.example.com, port 80). Change spec.hostnames, or add a listener.`,
	}, nil)
}

// The row of the listener contains the message.
func TestARouteDoesNotRepeatTheMessageOfItsListener(t *testing.T) {
	const route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: late, namespace: team}
spec: {parentRefs: [{kind: ListenerSet, name: late}], rules: [{backendRefs: [{name: web, port: 80}]}]}
`
	late := strings.NewReplacer("shop, namespace: shop", "late, namespace: team").Replace(shopSet)
	p := planOf(t, wildcardGateway, shopSet, late, route, webService)
	wantLines(t, explanation(t, p, "a.example.com"), []string{
		`  HTTPRoute team/late on ListenerSet team/late: HostnameConflict: Listener "exact" (see above)`,
	}, nil)
}

// The inputs of the decisions contain every message.
func TestNoMessageIsRepeatedForTheInputsOfDecisions(t *testing.T) {
	files, err := filepath.Glob("../gateway/testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no inputs: %v", err)
	}
	for _, file := range files {
		source, err := state.FromFiles([]string{file}, manifest.Options{}, options.ControllerName, config.DefaultClassName)
		if err != nil {
			continue // not all inputs are valid manifests
		}
		for _, g := range strings.Split(table(t, buildPlan(t, source, now)), "\n\n") {
			for _, message := range repeatedMessages(g) {
				t.Errorf("%s: the table repeats %q", filepath.Base(file), message)
			}
		}
	}
}
