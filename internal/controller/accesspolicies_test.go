package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// definitions is a cache that contains the CRD of AccessPolicies, unless its UID is empty.
type definitions struct {
	client.Reader
	uid      types.UID
	deleting bool
	err      error
	lists    int
}

func (d *definitions) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch {
	case d.err != nil:
		return d.err
	case d.uid == "" || key.Name != "accesspolicies.tunnelgateway.dev":
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	object.SetUID(d.uid)
	if d.deleting {
		now := metav1.Now()
		object.SetDeletionTimestamp(&now)
	}
	return nil
}

func (d *definitions) List(context.Context, client.ObjectList, ...client.ListOption) error {
	d.lists++
	return nil
}

// Nothing ends while the CRD is not served: the cache then has the wrong AccessPolicies.
func TestAccessPoliciesAreUnknownAfterTheirCRDWasRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		atStart types.UID
		now     definitions
		known   bool
	}{
		"the CRD exists":                             {"a", definitions{uid: "a"}, true},
		"the CRD is missing from the start":          {"", definitions{}, false},
		"the CRD was installed after the start":      {"", definitions{uid: "a"}, false},
		"the CRD is being deleted":                   {"a", definitions{uid: "a", deleting: true}, false},
		"the CRD was deleted":                        {"a", definitions{}, false},
		"the CRD was deleted and installed again":    {"a", definitions{uid: "b"}, false},
		"the CRD is being deleted from the start":    {"", definitions{uid: "a", deleting: true}, false},
		"the CRD was deleted, and exists again, too": {"a", definitions{uid: "b", deleting: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := accessPolicyReader{&test.now, NewAccessPolicies(CRDs{AccessPolicies: test.atStart}, logr.Discard())}
			err := r.List(t.Context(), &v1alpha1.AccessPolicyList{})
			if known := err == nil; known != test.known || !known && !errors.Is(err, state.ErrNoAccessPolicies) {
				t.Errorf("got %v, want that AccessPolicies are known: %t", err, test.known)
			}
			if err := r.List(t.Context(), &v1alpha1.TunnelList{}); err != nil {
				t.Errorf("listing another kind: %v", err)
			}
			// An old cache cannot become right again.
			test.now.uid, test.now.deleting = "a", false
			if err := r.List(t.Context(), &v1alpha1.AccessPolicyList{}); (err == nil) != test.known {
				t.Errorf("later: got %v, want that AccessPolicies are known: %t", err, test.known)
			}
		})
	}
}

func TestAReadErrorIsNoUnknownAccessPolicies(t *testing.T) {
	errRead := errors.New("the cache is broken")
	r := accessPolicyReader{&definitions{err: errRead}, NewAccessPolicies(CRDs{AccessPolicies: "a"}, logr.Discard())}
	if err := r.List(t.Context(), &v1alpha1.AccessPolicyList{}); !errors.Is(err, errRead) {
		t.Errorf("got %v, want the error of the cache", err)
	}
}

func TestTheControllerRestartsWhenAccessPoliciesBecomeKnown(t *testing.T) {
	const crd = "the CRD accesspolicies.tunnelgateway.dev was "
	for name, test := range map[string]struct {
		atStart types.UID
		now     definitions
		synced  bool
		want    string
	}{
		"no change":                              {"a", definitions{uid: "a"}, true, ""},
		"no CRD":                                 {"", definitions{}, true, ""},
		"a new CRD":                              {"", definitions{uid: "a"}, true, crd + "installed"},
		"another CRD":                            {"a", definitions{uid: "b"}, true, crd + "installed"},
		"a removed CRD":                          {"a", definitions{}, true, ""}, // a restart would change nothing
		"a CRD that is being deleted":            {"a", definitions{uid: "a", deleting: true}, true, ""},
		"a CRD that was removed before the sync": {"a", definitions{}, false, crd + "removed"}, // the sync would never end
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAccessPolicies(CRDs{AccessPolicies: test.atStart}, logr.Discard())
			if got, err := a.change(t.Context(), &test.now, test.synced); err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// The controller runs for the minimum time, so that a change twice in succession does not
// stop it from working.
func TestTheRestartForAccessPoliciesWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := NewAccessPolicies(CRDs{}, logr.Discard())
		err := a.Watch(t.Context(), &definitions{uid: "a"}, func() bool { return true })
		if !errors.Is(err, ErrAccessPoliciesInstalled) || !strings.Contains(err.Error(), "accesspolicies.tunnelgateway.dev was installed") {
			t.Errorf("got %v, want a restart", err)
		}
		if waited := time.Since(start); waited != minRunTime {
			t.Errorf("waited for %s, want %s", waited, minRunTime)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := a.Watch(ctx, &definitions{}, func() bool { return true }); err != nil {
			t.Errorf("got %v without a CRD, want nil", err)
		}
	})
}

func TestMissingAccessPoliciesAreLoggedOnce(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	NewAccessPolicies(CRDs{}, logger)
	removed := NewAccessPolicies(CRDs{AccessPolicies: "a"}, logger)
	for range 3 {
		if known, err := removed.areKnown(t.Context(), &definitions{}); known || err != nil {
			t.Fatalf("got %t, %v", known, err)
		}
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "their CRD is missing") || !strings.Contains(lines[1], "the CRD was removed") {
		t.Errorf("got %q, want one line for each cause", lines)
	}
}

// All Gateways are decided again, so that their conditions say what is unknown.
func TestChangesToTheCRDOfAccessPoliciesAffectEveryGateway(t *testing.T) {
	crd := kinds.CustomResourceDefinition.NewWatched().(client.Object)
	crd.SetName("accesspolicies.tunnelgateway.dev")
	other := kinds.CustomResourceDefinition.NewWatched().(client.Object)
	other.SetName("tunnels.tunnelgateway.dev")
	if !accessPolicyCRDChanged.Update(event.UpdateEvent{ObjectOld: crd, ObjectNew: crd}) || !accessPolicyCRDChanged.Delete(event.DeleteEvent{Object: crd}) {
		t.Error("a change to the CRD is ignored")
	}
	if accessPolicyCRDChanged.Create(event.CreateEvent{Object: crd}) || accessPolicyCRDChanged.Delete(event.DeleteEvent{Object: other}) {
		t.Error("the creation of the CRD or a change to another one is not ignored")
	}
}
