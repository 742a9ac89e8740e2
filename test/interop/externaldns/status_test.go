package externaldns

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// status is what the tests look at in the statuses of Gateways, ListenerSets
// and routes.
type status struct {
	Addresses  []gatewayv1.GatewayStatusAddress `json:"addresses"`
	Conditions []metav1.Condition               `json:"conditions"`
	Listeners  []gatewayv1.ListenerStatus       `json:"listeners"`
	Parents    []gatewayv1.RouteParentStatus    `json:"parents"`
}

func (w *world) status(kind, name string) status {
	GinkgoHelper()
	o := w.object(kind, name)
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	values, _, err := unstructured.NestedMap(o.Object, "status")
	Expect(err).NotTo(HaveOccurred())
	var s status
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(values, &s)).To(Succeed())
	return s
}

// accepted returns what a ListenerSet says of itself, as "Status Reason".
func (w *world) accepted(set string) func() string {
	return func() string { return acceptance(w.status("ListenerSet", set).Conditions) }
}

// acceptedEntry returns what an object says of one of its listeners.
func (w *world) acceptedEntry(kind, name, listener string) func() string {
	return func() string {
		for _, l := range w.status(kind, name).Listeners {
			if string(l.Name) == listener {
				return acceptance(l.Conditions)
			}
		}
		return "no entry"
	}
}

// attached returns what a route says of its parent of that name.
func (w *world) attached(kind, name, parent string) func() string {
	return func() string {
		for _, p := range w.status(kind, name).Parents {
			if string(p.ParentRef.Name) == parent {
				return acceptance(p.Conditions)
			}
		}
		return "no entry"
	}
}

func acceptance(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, string(gatewayv1.RouteConditionAccepted))
	if c == nil {
		return "nothing said"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

const accepted = "True Accepted"

// target returns where the names of the platform team's Gateway have to lead.
func (w *world) target(gateway string) string {
	GinkgoHelper()
	return w.tunnel(gateway) + ".cfargotunnel.com"
}

// answer returns the status that a request for the hostname gets through the
// tunnel of the platform team's shared Gateway.
func (w *world) answer(hostname string) int {
	GinkgoHelper()
	recorder := httptest.NewRecorder()
	edge.Tunnel(w.tunnel("shared")).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "http://"+w.text(hostname)+"/", http.NoBody))
	return recorder.Code
}

// tunnel returns the id of the Gateway's tunnel, as the simulator knows it.
func (w *world) tunnel(gateway string) string {
	GinkgoHelper()
	var id string
	Eventually(func() (found bool) {
		id, found = edge.TunnelID(clusterID + "." + w.platform + "." + gateway)
		return found
	}).Should(BeTrue())
	return id
}
