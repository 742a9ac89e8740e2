package faults

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// clusterFaults returns the faults of the cluster, of the controllers and of users.
func clusterFaults() []fault {
	return []fault{
		{name: "the API server restarts", run: restartAPIServer},
		{name: "every watch expires", run: expireWatches, onlyLong: true},
		{name: "the API server is unreachable", run: loseAPIServer, onlyLong: true},
		{name: "etcd is restored to an earlier state", run: restoreEtcd, onlyLong: true},
		{name: "the leader changes again and again", run: changeLeaders},
		{name: "the leader is killed", run: killLeader, onlyLong: true},
		{name: "500 objects are deleted at once", run: deleteMany, onlyLong: true},
		{name: "a label is changed 100 times", run: flipLabel},
		{name: "objects of every kind have 1.4 MB", run: growObjects, onlyLong: true},
		{name: "the API server refuses statuses", run: refuseStatuses, onlyLong: true},
	}
}

// killLeader kills the controller that is usually the leader. Another one waits for its lease.
func killLeader(w *world) {
	w.churn()
	w.replicas.replaceOldest(true)
}

// restartAPIServer restarts the API server while objects change.
func restartAPIServer(w *world) {
	w.churn()
	w.must(w.control.Restart())
	w.churn()
}

// expireWatches ends every watch of the controllers as if it had expired.
func expireWatches(w *world) {
	w.proxy.inject(expired)
	w.churn()
	w.eventually("expired watches", func() string {
		if n := w.proxy.answered(); n < 50 {
			return fmt.Sprintf("only %d watches expired", n)
		}
		return ""
	})
	w.proxy.inject(nil)
}

// loseAPIServer keeps the controllers from the API server until they have lost their lease.
func loseAPIServer(w *world) {
	w.proxy.inject(unreachable)
	w.churn()
	pause(w.Context(), 12*time.Second) // longer than the lease's deadline for its renewal
	w.proxy.inject(nil)
}

// restoreEtcd restores etcd to its state before many changes. Users repeat the creations, which
// the restore has lost.
func restoreEtcd(w *world) {
	backup := filepath.Join(w.dir, w.newName("backup"))
	if w.extra != "" {
		w.churn()
		w.settle()
	}
	w.churn()
	w.settle()
	w.must(w.control.Backup(backup))
	existed := w.extra
	w.churn() // deletes what existed
	w.churn() // creates something else
	w.settle()
	lost := w.extra
	exits := w.replicas.exited()
	w.nodeWatches.all.Store(true) // otherwise, the node would miss changes, as the controllers would
	w.must(w.control.Restore(backup))
	w.eventually("the restarts of the controllers", func() string {
		if n := w.replicas.exited() - exits; n < 2 {
			return fmt.Sprintf("%d of 2 controllers restarted", n)
		}
		return ""
	})
	w.nodeWatches.all.Store(false)
	w.replicas.checkGrace()
	// The tunnel of the lost Gateway is an orphan until its user applies the Gateway again.
	w.createExtra(lost)
	w.settle()
	w.deleteExtra(existed)
}

// changeLeaders replaces the leader again and again while objects change.
func changeLeaders(w *world) {
	interval, changes := 2*time.Second, 3
	if *long > 0 {
		interval, changes = 5*time.Second, 6
	}
	for range changes {
		w.churn()
		w.replicas.replaceOldest(false)
		pause(w.Context(), interval)
	}
}

// deleteMany deletes 500 routes at once.
func deleteMany(w *world) {
	for _, route := range bulk(500) {
		w.create(route)
	}
	w.settle()
	// On a busy machine, the API server ends the request after a minute.
	w.eventually("the deletion of the routes", func() string {
		return text(w.kube.DeleteAllOf(w.Context(), &gatewayv1.HTTPRoute{}, client.InNamespace("infra"), client.MatchingLabels{"bulk": "yes"}))
	})
}

// flipLabel changes the label that attaches ListenerSets of a namespace 100 times.
func flipLabel(w *world) {
	name := w.newName("flip")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: permitted}}
	w.create(namespace)
	for plane := range planes {
		set, route := newListenerSet(plane, plane, name+"-"+plane+".example.com"), newRoute("team", plane, "team", parentSet(plane))
		set.Namespace, route.Namespace = name, name
		w.create(set, route, &corev1.Service{ObjectMeta: in(name, "team"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		break
	}
	for i := range 101 {
		update(w, namespace, func(n *corev1.Namespace) { n.Labels["team"] = []string{"yes", "no"}[i%2] })
	}
	w.settle()
	w.delete(namespace)
	w.eventually("the deletion of the namespace", func() string {
		if err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return text(client.IgnoreNotFound(err))
		}
		return fmt.Sprint(namespace.Status.Conditions)
	})
}

// refuseStatuses makes the API server refuse the statuses of some objects of each kind, while
// others change.
func refuseStatuses(w *world) {
	if w.extra != "" {
		w.churn()
	}
	name := metav1.ObjectMeta{Name: w.newName("refused")}
	resources := []string{"httproutes/status", "listenersets/status", "gateways/status"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{gatewayv1.GroupName}, APIVersions: []string{"*"}, Resources: resources},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "!object.metadata.name.startsWith('extra')", Message: "this status is refused"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	w.create(policy, binding)
	probe := newRoute("infra", "extra-refused", "web")
	w.create(probe)
	w.eventually("the policy", func() string {
		current := probe.DeepCopy()
		if err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(probe), current); err != nil {
			return err.Error()
		}
		current.Status.Parents = []gatewayv1.RouteParentStatus{}
		if err := w.kube.Status().Update(w.Context(), current, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "this status is refused") {
			return "is not in effect"
		}
		return ""
	})
	w.churn()
	w.follow() // nothing else is affected
	w.follow()
	w.delete(binding, policy, probe)
}
