package cli_test

import (
	"strings"
	"testing"
)

// platformManifest is a Gateway, a ListenerSet, and a route for each, in two namespaces.
const platformManifest = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra, annotations: {tunnelgateway.dev/paused: "false"}}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: a, hostname: a.example.com, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: team-set, namespace: team}
spec:
  parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: shared, namespace: infra}
  listeners: [{name: a, hostname: team.example.com, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: home, namespace: infra}
spec:
  parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: shared}, {group: "", kind: Service, name: web}, {group: mesh.example.com, kind: Mesh, name: m}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team}
spec:
  parentRefs: [{kind: ListenerSet, name: team-set}]
  hostnames: [team.example.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: infra}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team, annotations: {tunnelgateway.dev/hostnames: "team.example.com, *.team.example.com"}}}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: settings, namespace: infra}
`

// objectMistakes returns changes to platformManifest, each with the message about it.
func objectMistakes() map[string]struct{ old, changed, message string } {
	const (
		routeRef, setRef, teamRef = "{group: gateway.networking.k8s.io, kind: Gateway, name: shared}", "{group: gateway.networking.k8s.io, kind: Gateway, name: shared, namespace: infra}", "{kind: ListenerSet, name: team-set}"
		annotations               = `annotations: {tunnelgateway.dev/paused: "false"}`
		hostnames                 = `tunnelgateway.dev/hostnames: "team.example.com, *.team.example.com"`
		settings                  = "{name: settings, namespace: infra"
		addContext                = " is not in the manifests. Add --context to combine the manifests with a cluster."
	)
	ref := func(old string) string { return strings.Replace(routeRef, "kind: Gateway", old, 1) }
	return map[string]struct{ old, changed, message string }{
		"kind of a parent with a letter missing": {routeRef, ref("kind: Gatway"), "HTTPRoute infra/home: spec.parentRefs[0].kind must be Gateway or ListenerSet, got Gatway; did you mean Gateway?"},
		"kind of a parent in lower case":         {routeRef, ref("kind: gateway"), "HTTPRoute infra/home: spec.parentRefs[0].kind must be Gateway or ListenerSet, got gateway; did you mean Gateway?"},
		"kind of a parent that resembles none":   {routeRef, ref("kind: GatewayClass"), "HTTPRoute infra/home: spec.parentRefs[0].kind must be Gateway or ListenerSet, got GatewayClass\n"},
		"Service as a parent without its group":  {routeRef, "{kind: Service, name: web, sectionName: http}", `HTTPRoute infra/home: spec.parentRefs[0].kind must be Gateway or ListenerSet, got Service; a parentRef to a Service needs group: ""`},
		"ListenerSet with a letter too many":     {teamRef, "{kind: ListennerSet, name: team-set}", "HTTPRoute team/web: spec.parentRefs[0].kind must be Gateway or ListenerSet, got ListennerSet; did you mean ListenerSet?"},
		"group of a parent":                      {routeRef, "{group: gateway.network.k8s.io, kind: Gateway, name: shared}", `HTTPRoute infra/home: spec.parentRefs[0].group "gateway.network.k8s.io" has no kind Gateway; did you mean gateway.networking.k8s.io?`},
		"group with swapped letters":             {routeRef, "{group: gateway.networking.k8s.oi, kind: Gateway, name: shared}", `HTTPRoute infra/home: spec.parentRefs[0].group "gateway.networking.k8s.oi" has no kind Gateway; did you mean gateway.networking.k8s.io?`},
		"group of Ingresses":                     {routeRef, "{group: networking.k8s.io, kind: Gateway, name: shared}", `HTTPRoute infra/home: spec.parentRefs[0].group "networking.k8s.io" has no kind Gateway; did you mean gateway.networking.k8s.io?`},
		"experimental group":                     {routeRef, "{group: gateway.networking.x-k8s.io, kind: Gateway, name: shared}", `HTTPRoute infra/home: spec.parentRefs[0].group "gateway.networking.x-k8s.io" has no kind Gateway; did you mean gateway.networking.k8s.io?`},
		"empty group":                            {routeRef, `{group: "", kind: Gateway, name: shared}`, `HTTPRoute infra/home: spec.parentRefs[0].group "" has no kind Gateway; did you mean gateway.networking.k8s.io?`},
		"no parents":                             {"  parentRefs: [" + teamRef + "]\n", "", "HTTPRoute team/web: spec.parentRefs is empty, so no Gateway serves the route. Add a parentRef to a Gateway or ListenerSet."},
		"empty list of parents":                  {"[" + teamRef + "]", "[]", "HTTPRoute team/web: spec.parentRefs is empty, so no Gateway serves the route."},
		"Gateway with a letter missing":          {routeRef, "{name: shred}", "HTTPRoute infra/home: Gateway infra/shred is not in the manifests; did you mean Gateway infra/shared?"},
		"Gateway without its namespace":          {teamRef, "{name: shared}", "HTTPRoute team/web: Gateway team/shared is not in the manifests; did you mean Gateway infra/shared?"},
		"namespace with a letter missing":        {teamRef, "{name: shared, namespace: infr}", "HTTPRoute team/web: Gateway infr/shared is not in the manifests; did you mean Gateway infra/shared?"},
		"ListenerSet without its kind":           {teamRef, "{name: team-set}", "HTTPRoute team/web: Gateway team/team-set is not in the manifests; did you mean ListenerSet team/team-set?"},
		"ListenerSet with a letter missing":      {teamRef, "{kind: ListenerSet, name: tem-set}", "HTTPRoute team/web: ListenerSet team/tem-set is not in the manifests; did you mean ListenerSet team/team-set?"},
		"Gateway that resembles nothing":         {teamRef, "{name: other}", "HTTPRoute team/web: Gateway team/other" + addContext},
		"one of two parents":                     {teamRef, teamRef + ", {kind: ListenerSet, name: other}", "HTTPRoute team/web: ListenerSet team/other" + addContext},
		"Gateway of a ListenerSet":               {setRef, "{name: shred, namespace: infra}", "HTTPRoute team/web, ListenerSet team/team-set: Gateway infra/shred is not in the manifests; did you mean Gateway infra/shared?"},
		"kind of a ListenerSet's parent":         {setRef, "{kind: Gateay, name: shared, namespace: infra}", "ListenerSet team/team-set: spec.parentRef.kind must be Gateway, got Gateay; did you mean Gateway?"},
		"route of a ListenerSet without Gateway": {setRef, "{kind: Gateay, name: shared, namespace: infra}", "HTTPRoute team/web: ListenerSet team/team-set does not refer to a Gateway. Correct its spec.parentRef."},
		"ListenerSet as a ListenerSet's parent":  {setRef, "{kind: ListenerSet, name: shared, namespace: infra}", "ListenerSet team/team-set: spec.parentRef.kind must be Gateway, got ListenerSet\n"},
		"group of a ListenerSet's parent":        {setRef, "{group: gateway.networkin.k8s.io, kind: Gateway, name: shared, namespace: infra}", `ListenerSet team/team-set: spec.parentRef.group "gateway.networkin.k8s.io" has no kind Gateway; did you mean gateway.networking.k8s.io?`},

		"annotation with a letter missing": {annotations, `annotations: {tunnelgateway.dev/paued: "true"}`, "Gateway infra/shared: annotation tunnelgateway.dev/paued does not exist; did you mean tunnelgateway.dev/paused?"},
		"annotation in upper case":         {annotations, `annotations: {tunnelgateway.dev/Paused: "true"}`, "Gateway infra/shared: annotation tunnelgateway.dev/Paused does not exist; did you mean tunnelgateway.dev/paused?"},
		"domain with a letter missing":     {annotations, `annotations: {tunelgateway.dev/paused: "true"}`, "Gateway infra/shared: annotation tunelgateway.dev/paused does not exist; did you mean tunnelgateway.dev/paused?"},
		"annotation that resembles none":   {settings, settings + `, annotations: {tunnelgateway.dev/other: ""}`, "TunnelConfiguration infra/settings: annotation tunnelgateway.dev/other does not exist\n"},
		"value with a letter missing":      {annotations, `annotations: {tunnelgateway.dev/paused: "tru"}`, `Gateway infra/shared: annotation tunnelgateway.dev/paused has no effect with the value "tru"; did you mean true?`},
		"value in upper case":              {annotations, `annotations: {tunnelgateway.dev/paused: "True"}`, `Gateway infra/shared: annotation tunnelgateway.dev/paused has no effect with the value "True"; did you mean true?`},
		"value that resembles none":        {annotations, `annotations: {tunnelgateway.dev/paused: "1"}`, `Gateway infra/shared: annotation tunnelgateway.dev/paused has no effect with the value "1"; the value must be true or false`},
		"label instead of an annotation":   {annotations, `labels: {tunnelgateway.dev/paused: "true"}`, "Gateway infra/shared: label tunnelgateway.dev/paused has no effect; set it as an annotation"},
		"label with a letter missing":      {annotations, `labels: {tunnelgateway.dev/pause: "true"}`, "Gateway infra/shared: label tunnelgateway.dev/pause does not exist; did you mean the annotation tunnelgateway.dev/paused?"},
		"label that resembles none":        {annotations, `labels: {tunnelgateway.dev/other: "true"}`, "Gateway infra/shared: label tunnelgateway.dev/other does not exist\n"},
		"annotation of a Gateway":          {settings, settings + `, annotations: {tunnelgateway.dev/paused: "true"}`, "TunnelConfiguration infra/settings: annotation tunnelgateway.dev/paused has no effect on kind TunnelConfiguration; it belongs on kind Gateway"},
		"annotation of a Tunnel":           {annotations, `annotations: {tunnelgateway.dev/rotate-token: "1"}`, "Gateway infra/shared: annotation tunnelgateway.dev/rotate-token has no effect on kind Gateway; it belongs on kind Tunnel"},
		"reconcile on a Gateway":           {annotations, `annotations: {tunnelgateway.dev/reconcile: "1"}`, "Gateway infra/shared: annotation tunnelgateway.dev/reconcile has no effect on kind Gateway; it belongs on kind Tunnel"},
		"annotation of a Namespace":        {annotations, `annotations: {tunnelgateway.dev/hostnames: "*"}`, "Gateway infra/shared: annotation tunnelgateway.dev/hostnames has no effect on kind Gateway; it belongs on kind Namespace"},
		"hostnames with a letter missing":  {hostnames, `tunnelgateway.dev/hostname: "*"`, "Namespace team: annotation tunnelgateway.dev/hostname does not exist; did you mean tunnelgateway.dev/hostnames?"},
		"hostname that is not valid":       {hostnames, `tunnelgateway.dev/hostnames: "team.example.com, Team.example.com"`, `Namespace team: annotation tunnelgateway.dev/hostnames has the entry "Team.example.com", which permits nothing; `},
	}
}

func TestMistakesInParentsAndAnnotationsAreReported(t *testing.T) {
	withoutCluster(t)
	if got := run(t, platformManifest, "plan", "-f", "-", "--strict"); got.status != 0 {
		t.Fatalf("the manifest without a mistake: status = %d, stdout:\n%s", got.status, got.stdout)
	}
	for name, test := range objectMistakes() {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(platformManifest, test.old, test.changed, 1)
			if changed == platformManifest {
				t.Fatalf("the manifest does not contain %q", test.old)
			}
			table := run(t, changed, "plan", "-f", "-", "--strict")
			document := run(t, changed, "plan", "-f", "-", "--strict", "-o", "yaml")
			if table.status != 2 || !strings.Contains(table.stdout, "\n"+test.message) {
				t.Errorf("status = %d, stdout:\n%s\nwant status 2 and %q", table.status, table.stdout, test.message)
			}
			if document.status != 2 || !strings.Contains(document.stderr, "warning: "+test.message) {
				t.Errorf("with YAML, status = %d, stderr:\n%s\nwant status 2 and %q", document.status, document.stderr, test.message)
			}
		})
	}
}
