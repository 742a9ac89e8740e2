package cluster

import "testing"

func TestChangesOutsideTheNamespaceAreDetected(t *testing.T) {
	inside := func(namespace string) bool { return namespace == "inside" }
	for _, test := range []struct {
		request Request
		want    bool
	}{
		{Request{Verb: "create", Resource: "secrets", Namespace: "inside"}, false},
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
		if got := test.request.ChangesOutside(inside); got != test.want {
			t.Errorf("%s: ChangesOutside = %v, want %v", test.request, got, test.want)
		}
	}
}
