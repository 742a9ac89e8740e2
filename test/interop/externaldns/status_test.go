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

// status contains the status fields of Gateways, ListenerSets and routes that the specs
// check.
type status struct {
	Addresses  []gatewayv1.GatewayStatusAddress `json:"addresses"`
	Conditions []metav1.Condition               `json:"conditions"`
	Listeners  []gatewayv1.ListenerStatus       `json:"listeners"`
	Parents    []gatewayv1.RouteParentStatus    `json:"parents"`
}

// status reads a Gateway API object's status.
func (e *environment) status(kind, name string) status {
	GinkgoHelper()
	o := e.object(kind, name)
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	values, _, err := unstructured.NestedMap(o.Object, "status")
	Expect(err).NotTo(HaveOccurred())
	var s status
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(values, &s)).To(Succeed())
	return s
}

// setAcceptance returns a function that returns a ListenerSet's condition Accepted.
func (e *environment) setAcceptance(set string) func() string {
	return func() string { return formatAcceptance(e.status("ListenerSet", set).Conditions) }
}

// listenerAcceptance returns a function that returns a listener's condition Accepted.
func (e *environment) listenerAcceptance(kind, name, listener string) func() string {
	return func() string {
		for _, l := range e.status(kind, name).Listeners {
			if string(l.Name) == listener {
				return formatAcceptance(l.Conditions)
			}
		}
		return "no status"
	}
}

// routeAcceptance returns a function that returns a route's condition Accepted for a
// parent.
func (e *environment) routeAcceptance(kind, name, parent string) func() string {
	return func() string {
		for _, p := range e.status(kind, name).Parents {
			if string(p.ParentRef.Name) == parent {
				return formatAcceptance(p.Conditions)
			}
		}
		return "no status"
	}
}

// formatAcceptance returns the condition Accepted as "Status Reason".
func formatAcceptance(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, string(gatewayv1.RouteConditionAccepted))
	if c == nil {
		return "no condition"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

const accepted = "True Accepted"

// tunnelTarget returns the target that records for the platform team's Gateway have.
func (e *environment) tunnelTarget(gateway string) string {
	GinkgoHelper()
	return e.tunnelID(gateway) + ".cfargotunnel.com"
}

// responseCode sends a visitor's request for the hostname, which its record leads to a
// tunnel, and returns the status code.
func (e *environment) responseCode(hostname string) int {
	GinkgoHelper()
	recorder := httptest.NewRecorder()
	edge.Visitors().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "http://"+e.expand(hostname)+"/", http.NoBody))
	return recorder.Code
}

// tunnelID waits until the Gateway's tunnel exists and returns its ID.
func (e *environment) tunnelID(gateway string) string {
	GinkgoHelper()
	return e.tunnelIDIn(clusterID, gateway)
}

// tunnelIDIn is tunnelID for the installation with the cluster ID.
func (e *environment) tunnelIDIn(clusterID, gateway string) string {
	GinkgoHelper()
	var id string
	Eventually(func() (found bool) {
		id, found = edge.TunnelID(clusterID + "." + e.platform + "." + gateway)
		return found
	}).Should(BeTrue())
	return id
}
