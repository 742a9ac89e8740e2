package cluster

import "testing"

func TestChangesOutside(t *testing.T) {
	isOwn := func(namespace string) bool { return namespace == "own" }
	for _, test := range []struct {
		request Request
		want    bool
	}{
		{Request{Verb: "create", Resource: "secrets", Namespace: "own"}, false},
		{Request{Verb: "create", Resource: "secrets", Namespace: "team"}, true},
		{Request{Verb: "delete", Resource: "tunnels", Namespace: "team"}, true},
		{Request{Verb: "deletecollection", Resource: "pods", Namespace: "team"}, true},
		{Request{Verb: "patch", Resource: "gatewayclasses"}, true},
		{Request{Verb: "update", Resource: "gateways", Subresource: "finalizers", Namespace: "team"}, true},
		{Request{Verb: "update", Resource: "gateways", Subresource: "status", Namespace: "team"}, false},
		{Request{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: "team"}, false},
		{Request{Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}, false},
		{Request{Verb: "get", Resource: "secrets", Namespace: "team"}, false},
		{Request{Verb: "watch", Resource: "gateways"}, false},
	} {
		if got := test.request.ChangesOutside(isOwn); got != test.want {
			t.Errorf("%s: %v, want %v", test.request, got, test.want)
		}
	}
}
