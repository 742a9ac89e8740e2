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

// auditPolicy logs each completed request by users that need permissions. A watch is
// logged when it starts and when it ends. Response bodies are logged only for Secret
// lists, because they show whether the client requested only metadata.
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

// Audit returns a function that makes an API server log every request that it completes,
// and the log's path, which [ReadAudit] reads. It writes the audit policy to dir, which
// also contains the log.
func Audit(dir string) (log string, configure func(*envtest.APIServer), err error) {
	policy, log := filepath.Join(dir, "audit-policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return "", nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return log, func(server *envtest.APIServer) {
		server.Configure().
			Set("audit-policy-file", policy).Set("audit-log-path", log).
			// The log contains a request before the client gets the answer.
			Set("audit-log-mode", "blocking-strict")
	}, nil
}

// Request is a user's request for a resource, with its result.
type Request struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// Code is the HTTP status of the response.
	Code int32
	// Terminating reports whether the API server rejected the request because the
	// namespace is being deleted. No user can create objects in such a namespace.
	Terminating bool
	// ResponseKind is the kind of the returned object if the request lists Secrets, and
	// empty for other requests.
	ResponseKind string
}

// String returns the verb, the resource, the object and the status.
func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s.%s %s/%s: %d", r.Verb, resource, r.Group, r.Namespace, r.Name, r.Code)
}

// ChangesOutside reports whether the request changes an object outside the
// namespaces for which inside returns true. Statuses and events do not count, and
// neither do permission reviews, which the API server does not store.
func (r Request) ChangesOutside(inside func(namespace string) bool) bool {
	switch {
	case slices.Contains([]string{"get", "list", "watch"}, r.Verb), inside(r.Namespace):
		return false
	case r.Subresource == "status", r.Resource == "events" && r.Subresource == "":
		return false
	case r.Group == authorizationv1.GroupName:
		return false
	}
	return true
}

// ReadAudit returns a user's requests for resources, from the log that [Audit]
// configures. It omits discovery requests, which every user may send.
func ReadAudit(log, user string) ([]Request, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close() //nolint:errcheck // the file is only read
	var requests []Request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if e.User.Username != user || e.ObjectRef == nil || e.ObjectRef.Resource == "" {
			continue
		}
		requests = append(requests, newRequest(&e))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
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
		var object metav1.TypeMeta
		_ = json.Unmarshal(e.ResponseObject.Raw, &object) // the kind stays empty on an error
		r.ResponseKind = object.Kind
	}
	return r
}

func isTerminating(status *metav1.Status) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == corev1.NamespaceTerminatingCause
	})
}
