package cluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy has a line for each answered request of those who have to have
// permissions, for a watch when it begins and when it ends; of the answers only the lists of Secrets, to see what of them was
// asked for.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:masters", "system:serviceaccounts:kube-system"]
- level: None
  users: ["system:apiserver", "system:kube-controller-manager"]
- level: RequestResponse
  verbs: [list]
  resources: [{group: "", resources: [secrets]}]
- level: Metadata
`

// Audit returns what makes an API server write down every request that it has
// answered, and the file that it writes to, which [ReadAudit] reads. Both are
// in dir.
func Audit(dir string) (log string, configure func(*envtest.APIServer), err error) {
	policy, log := filepath.Join(dir, "audit-policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return "", nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return log, func(server *envtest.APIServer) {
		server.Configure().
			Set("audit-policy-file", policy).Set("audit-log-path", log).
			// So that a request that was answered is in the file at once.
			Set("audit-log-mode", "blocking-strict")
	}, nil
}

// Request is an answered request of a user for a resource.
type Request struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// Code is the status of the answer.
	Code int32
	// Terminating is whether the request was refused because its namespace is
	// being deleted: nobody may create objects there, whatever their permissions.
	Terminating bool
	// ResponseKind is the kind of object that a list of Secrets was answered with; of
	// other requests it is not known.
	ResponseKind string
}

// String names what was asked for, and the answer.
func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s.%s %s/%s: %d", r.Verb, resource, r.Group, r.Namespace, r.Name, r.Code)
}

// ChangesOutside reports whether the request changes an object outside the
// namespaces, by any verb other than a read. Statuses and events do not count, and
// neither do reviews of permissions, which the API server does not store.
func (r Request) ChangesOutside(isOwn func(namespace string) bool) bool {
	switch {
	case slices.Contains([]string{"get", "list", "watch"}, r.Verb), isOwn(r.Namespace):
		return false
	case r.Subresource == "status", r.Resource == "events" && r.Subresource == "":
		return false
	case r.Group == authorizationv1.GroupName:
		return false
	}
	return true
}

// ReadAudit returns the requests of a user for resources, from the log of
// [Audit]. Those for lists of what the server can do are left out: everybody
// may make them.
func ReadAudit(log, user string) ([]Request, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	var requests []Request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if e.User.Username != user || e.ObjectRef == nil || e.ObjectRef.Resource == "" {
			continue
		}
		requests = append(requests, newRequest(&e))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return requests, nil
}

func newRequest(e *auditv1.Event) Request {
	r := Request{
		Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
	}
	if e.ResponseStatus != nil {
		r.Code = e.ResponseStatus.Code
		r.Terminating = isTerminating(e.ResponseStatus)
	}
	if e.ResponseObject != nil {
		var answer metav1.TypeMeta
		_ = json.Unmarshal(e.ResponseObject.Raw, &answer) // one that does not parse has no kind
		r.ResponseKind = answer.Kind
	}
	return r
}

func isTerminating(status *metav1.Status) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == corev1.NamespaceTerminatingCause
	})
}
