package state_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// policyManifest is an AccessPolicy with the targets and the status entries, in flow style.
func policyManifest(namespace, name, targets, ancestors string) string {
	return "---\napiVersion: tunnelgateway.dev/v1alpha1\nkind: AccessPolicy\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"spec: {policies: [employees], targetRefs: [" + targets + "]}\nstatus: {ancestors: [" + ancestors + "]}\n"
}

// policyTarget is a targetRef, in flow style.
func policyTarget(kind, name string) string {
	return "{group: gateway.networking.k8s.io, kind: " + kind + ", name: " + name + "}"
}

// policyEntry is a status entry, in flow style.
func policyEntry(controller, kind, name, namespace string) string {
	return "{controllerName: " + controller + ", ancestorRef: {kind: " + kind + ", name: " + name + ", namespace: " + namespace + "}, " +
		"conditions: [{type: Accepted, status: \"True\", reason: Accepted, message: accepted, lastTransitionTime: \"2021-01-01T00:00:00Z\"}]}"
}

var accessPolicyManifests = clusterManifests +
	policyManifest("infra", "gateway", policyTarget("Gateway", "shared"), "") +
	policyManifest("infra", "both", policyTarget("Gateway", "shared")+", "+policyTarget("ListenerSet", "near"), "") +
	policyManifest("team", "set", policyTarget("ListenerSet", "far"), "") +
	policyManifest("team", "same-name-elsewhere", policyTarget("Gateway", "shared"), "") +
	policyManifest("team", "no-longer", policyTarget("ListenerSet", "missing"), policyEntry(controllerName, "Gateway", "shared", "infra")) +
	policyManifest("team", "of-another-controller", policyTarget("ListenerSet", "missing"), policyEntry("example.com/other", "Gateway", "shared", "infra")) +
	policyManifest("infra", "unmanaged", policyTarget("Gateway", "unmanaged"), "") +
	policyManifest("infra", "absent", policyTarget("Gateway", "absent"), "") +
	policyManifest("team", "own-ancestor", policyTarget("ListenerSet", "gone"), policyEntry(controllerName, "ListenerSet", "far", "team"))

func TestLoadReadsTheAccessPoliciesOfAKey(t *testing.T) {
	for name, test := range map[string]struct {
		key  state.Key
		want []string
	}{
		"a Gateway and its ListenerSets":         {state.GatewayKey("infra", "shared"), []string{"infra/both", "infra/gateway", "team/no-longer", "team/own-ancestor", "team/set"}},
		"a Gateway with the same name":           {state.GatewayKey("team", "shared"), []string{"team/same-name-elsewhere"}},
		"a Gateway of another controller":        {state.GatewayKey("infra", "unmanaged"), []string{"infra/unmanaged"}},
		"a Gateway that does not exist":          {state.GatewayKey("infra", "absent"), []string{"infra/absent"}},
		"a ListenerSet that does not exist":      {setKey("team", "gone"), []string{"team/own-ancestor"}},
		"a ListenerSet that has a Gateway":       {setKey("team", "far"), nil}, // its Gateway's reconcile covers it
		"a ListenerSet that no policy refers to": {setKey("team", "deleted"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := newLoader(memory(t, objects(t, accessPolicyManifests))).Load(t.Context(), test.key)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, policyNames(loaded)); diff != "" || loaded.Snapshot.AccessPoliciesUnknown {
				t.Errorf("unknown %t, policies differ (-want +got):\n%s", loaded.Snapshot.AccessPoliciesUnknown, diff)
			}
		})
	}
}

// policyNames returns the sorted names of the AccessPolicies in the snapshot.
func policyNames(loaded *state.Loaded) []string {
	var names []string
	for _, policy := range loaded.Snapshot.AccessPolicies {
		names = append(names, client.ObjectKeyFromObject(policy).String())
	}
	slices.Sort(names)
	return names
}

// notServed is an apiServer.fail for a cluster without the CRD of AccessPolicies.
func notServed(_ client.ObjectKey, object any) error {
	if _, ok := object.(*v1alpha1.AccessPolicyList); ok {
		return apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return nil
}

func TestAccessPoliciesAreUnknownWithoutTheirCRD(t *testing.T) {
	server := newAPIServer(t, clusterManifests)
	server.fail = notServed
	source := fromCluster(t, server, "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n")
	if source.Gaps != nil {
		t.Errorf("got the gaps %v, want none", source.Gaps)
	}
	unchanged, err := source.WithoutManifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*state.Source{source, unchanged} {
		loaded, err := newLoader(s).Load(t.Context(), state.GatewayKey("infra", "shared"))
		if err != nil {
			t.Fatal(err)
		}
		if !loaded.Snapshot.AccessPoliciesUnknown || !loaded.Managed {
			t.Errorf("unknown %t, managed %t; want true, true", loaded.Snapshot.AccessPoliciesUnknown, loaded.Managed)
		}
	}
}

func TestAManifestWithAnAccessPolicyRequiresTheCRD(t *testing.T) {
	server := newAPIServer(t, clusterManifests)
	server.fail = notServed
	set, err := manifest.Parse("in.yaml", []byte(policyManifest("team", "set", policyTarget("ListenerSet", "far"), "")), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = state.FromCluster(t.Context(), newCluster(server), set)
	if err == nil || !strings.Contains(err.Error(), "the cluster has no AccessPolicies: the CRD accesspolicies.tunnelgateway.dev is missing") {
		t.Errorf("got %v, want an error that names the CRD", err)
	}
}

// A user who may list only namespace team reads the platform's Gateway by its name.
func TestAccessPoliciesThatTheUserMayNotListAreUnknown(t *testing.T) {
	forbid := func(all ...string) func(client.ObjectKey, any) error {
		lists := 0
		return forbidAs("jane", func(_ client.ObjectKey, object any) bool {
			_, isList := object.(*v1alpha1.AccessPolicyList)
			if isList {
				lists++
			}
			return isList && lists <= len(all) && all[lists-1] == "no"
		})
	}
	for name, test := range map[string]struct {
		fail    func(client.ObjectKey, any) error // for all namespaces, team, infra
		unknown map[string]bool
		gaps    int
		want    []string
	}{
		"all namespaces": {forbid(), map[string]bool{"infra": false, "team": false}, 0, []string{"infra/both", "infra/gateway", "team/no-longer", "team/own-ancestor", "team/set"}},
		"its own namespace": {
			forbid("no", "yes", "no"), map[string]bool{"infra": true, "team": false}, 1, []string{"team/no-longer", "team/own-ancestor", "team/set"},
		},
		"its own and the Gateway's": {
			forbid("no", "yes", "yes"), map[string]bool{"infra": false, "team": false}, 1,
			[]string{"infra/both", "infra/gateway", "team/no-longer", "team/own-ancestor", "team/set"},
		},
		"none": {forbid("no", "no", "no"), map[string]bool{"infra": true, "team": true}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, accessPolicyManifests)
			server.fail = test.fail
			source := permissive(t, server, controllerNamespace, "")
			if len(source.Gaps) != test.gaps {
				t.Errorf("got the gaps %v, want %d", source.Gaps, test.gaps)
			}
			for namespace, want := range test.unknown {
				loaded, err := newLoader(source).Load(t.Context(), state.GatewayKey(namespace, "shared"))
				if err != nil {
					t.Fatal(err)
				}
				if loaded.Snapshot.AccessPoliciesUnknown != want {
					t.Errorf("the AccessPolicies of Gateway %s/shared are unknown: %t, want %t", namespace, !want, want)
				}
				if diff := cmp.Diff(test.want, policyNames(loaded)); namespace == "infra" && diff != "" {
					t.Errorf("policies differ (-want +got):\n%s", diff)
				}
			}
		})
	}
}
