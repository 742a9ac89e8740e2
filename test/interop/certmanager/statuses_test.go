package certmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// formatConditions returns the sorted conditions as "Type=Status Reason". It omits the
// conditions about connectors, which the test cluster cannot run.
func formatConditions(conditions []metav1.Condition) string {
	var all []string
	for _, c := range conditions {
		if !strings.Contains(c.Type, "/") {
			all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Conditions on Gateways, ListenerSets and their listeners.
const (
	setProgrammed       = "Accepted=True Accepted, Programmed=True Programmed"
	setListenersInvalid = "Accepted=False ListenersNotValid, Programmed=False ListenersNotValid"
	setNotAllowed       = "Accepted=False NotAllowed, Programmed=False NotAllowed"
	listenerProgrammed  = "Accepted=True Accepted, Conflicted=False NoConflicts, Programmed=True Programmed, ResolvedRefs=True ResolvedRefs"
	certificateMissing  = "Accepted=True Accepted, Conflicted=False NoConflicts, Programmed=False Invalid, ResolvedRefs=False InvalidCertificateRef"
	partlyProgrammed    = "Accepted=True ListenersNotValid, Programmed=True Programmed"
)

// listenerSetConditions returns the ListenerSet's conditions, followed by each listener's
// conditions.
func listenerSetConditions(s *gatewayv1.ListenerSet) []string {
	GinkgoHelper()
	conditions := []string{formatConditions(get(s).Status.Conditions)}
	for _, l := range s.Status.Listeners {
		conditions = append(conditions, formatConditions(l.Conditions))
	}
	return conditions
}

// gatewayConditions returns the Gateway's conditions, followed by each listener's
// conditions.
func gatewayConditions(g *gatewayv1.Gateway) []string {
	GinkgoHelper()
	conditions := []string{formatConditions(get(g).Status.Conditions)}
	for _, l := range g.Status.Listeners {
		conditions = append(conditions, formatConditions(l.Conditions))
	}
	return conditions
}

// statusHistory records all Gateway and ListenerSet statuses in some namespaces.
type statusHistory struct {
	mu        sync.Mutex
	lastEvent time.Time // of the last watch event
	versions  map[string][]client.Object
}

// watchStatuses records statuses until the spec ends.
func watchStatuses(namespaces ...string) *statusHistory {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	h := &statusHistory{lastEvent: time.Now(), versions: map[string][]client.Object{}}
	for _, namespace := range namespaces {
		for _, list := range []client.ObjectList{&gatewayv1.GatewayList{}, &gatewayv1.ListenerSetList{}} {
			watcher, err := kube.Watch(ctx, list, client.InNamespace(namespace))
			Expect(err).NotTo(HaveOccurred())
			go func() {
				for event := range watcher.ResultChan() {
					if o, ok := event.Object.(client.Object); ok {
						h.add(o)
					}
				}
			}()
		}
	}
	return h
}

// describe returns the object's type, namespace and name.
func describe(o client.Object) string {
	return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
}

func (h *statusHistory) add(o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastEvent = time.Now()
	versions := h.versions[describe(o)]
	if len(versions) == 0 || statusText(versions[len(versions)-1]) != statusText(o) {
		h.versions[describe(o)] = append(versions, o)
	}
}

// statusText returns the status as JSON, including messages and times.
func statusText(o client.Object) string {
	var status any
	switch o := o.(type) {
	case *gatewayv1.Gateway:
		status = o.Status
	case *gatewayv1.ListenerSet:
		status = o.Status
	}
	text, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// waitUntilQuiet waits until there has been no event for two seconds. By then, the
// controller has written all statuses.
func (h *statusHistory) waitUntilQuiet() {
	GinkgoHelper()
	Eventually(func() time.Duration {
		h.mu.Lock()
		defer h.mu.Unlock()
		return time.Since(h.lastEvent)
	}).Should(BeNumerically(">=", 2*time.Second))
}

// reset discards all but the last status for each object.
func (h *statusHistory) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for object, versions := range h.versions {
		h.versions[object] = versions[len(versions)-1:]
	}
}

// statuses returns the object's statuses in chronological order.
func (h *statusHistory) statuses(o client.Object) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, version := range h.versions[describe(o)] {
		all = append(all, statusText(version))
	}
	return all
}

// transitions returns the successive values of a listener's condition as "Status Reason",
// without repetitions. It ignores versions in which the condition is missing or Unknown.
func (h *statusHistory) transitions(s *gatewayv1.ListenerSet, listener string, conditionType gatewayv1.ListenerEntryConditionType) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, version := range h.versions[describe(s)] {
		for _, l := range version.(*gatewayv1.ListenerSet).Status.Listeners {
			c := meta.FindStatusCondition(l.Conditions, string(conditionType))
			if string(l.Name) != listener || c == nil || c.Status == metav1.ConditionUnknown {
				continue
			}
			all = append(all, string(c.Status)+" "+c.Reason)
		}
	}
	return slices.Compact(all)
}
