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

// say returns the conditions as "Type=Status Reason", sorted. What the
// controller says about connectors is left out: no node runs any.
func say(conditions []metav1.Condition) string {
	var all []string
	for _, c := range conditions {
		if !strings.Contains(c.Type, "/") {
			all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// What a ListenerSet and its listeners say.
const (
	setServes  = "Accepted=True Accepted, Programmed=True Programmed"
	setInvalid = "Accepted=False ListenersNotValid, Programmed=False ListenersNotValid"
	setRefused = "Accepted=False NotAllowed, Programmed=False NotAllowed"
	serves     = "Accepted=True Accepted, Conflicted=False NoConflicts, Programmed=True Programmed, ResolvedRefs=True ResolvedRefs"
	waits      = "Accepted=True Accepted, Conflicted=False NoConflicts, Programmed=False Invalid, ResolvedRefs=False InvalidCertificateRef"
	halfServes = "Accepted=True ListenersNotValid, Programmed=True Programmed"
)

// setSays returns the conditions of the set and of each of its listeners.
func setSays(s *gatewayv1.ListenerSet) []string {
	GinkgoHelper()
	said := []string{say(fresh(s).Status.Conditions)}
	for _, l := range s.Status.Listeners {
		said = append(said, say(l.Conditions))
	}
	return said
}

// gatewaySays returns the conditions of the Gateway and of each of its listeners.
func gatewaySays(g *gatewayv1.Gateway) []string {
	GinkgoHelper()
	said := []string{say(fresh(g).Status.Conditions)}
	for _, l := range g.Status.Listeners {
		said = append(said, say(l.Conditions))
	}
	return said
}

// record has every status of the Gateways and ListenerSets of some namespaces.
type record struct {
	mu       sync.Mutex
	last     time.Time // when the watch told something
	statuses map[string][]client.Object
}

// watchStatuses records from now on until the spec ends.
func watchStatuses(namespaces ...string) *record {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	r := &record{last: time.Now(), statuses: map[string][]client.Object{}}
	for _, namespace := range namespaces {
		for _, list := range []client.ObjectList{&gatewayv1.GatewayList{}, &gatewayv1.ListenerSetList{}} {
			w, err := kube.Watch(ctx, list, client.InNamespace(namespace))
			Expect(err).NotTo(HaveOccurred())
			go func() {
				for event := range w.ResultChan() {
					if o, ok := event.Object.(client.Object); ok {
						r.add(o)
					}
				}
			}()
		}
	}
	return r
}

func key(o client.Object) string { return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()) }

func (r *record) add(o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	seen := r.statuses[key(o)]
	if len(seen) == 0 || statusText(seen[len(seen)-1]) != statusText(o) {
		r.statuses[key(o)] = append(seen, o)
	}
}

// statusText is all of a status, messages and times included.
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

// settle waits until nothing has been written for two seconds: what the
// controller had to say by then, it has said.
func (r *record) settle() {
	GinkgoHelper()
	Eventually(func() time.Duration {
		r.mu.Lock()
		defer r.mu.Unlock()
		return time.Since(r.last)
	}).Should(BeNumerically(">=", 2*time.Second))
}

// forget keeps only the last status of each object.
func (r *record) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, seen := range r.statuses {
		r.statuses[k] = seen[len(seen)-1:]
	}
}

// of returns the statuses of the object, one after the other.
func (r *record) of(o client.Object) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, one := range r.statuses[key(o)] {
		all = append(all, statusText(one))
	}
	return all
}

// transitions returns what a condition of the set's listener said, without
// repetitions, since it first was neither missing nor Unknown.
func (r *record) transitions(s *gatewayv1.ListenerSet, listener string, kind gatewayv1.ListenerEntryConditionType) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, one := range r.statuses[key(s)] {
		for _, l := range one.(*gatewayv1.ListenerSet).Status.Listeners {
			c := meta.FindStatusCondition(l.Conditions, string(kind))
			if string(l.Name) != listener || c == nil || c.Status == metav1.ConditionUnknown {
				continue
			}
			all = append(all, string(c.Status)+" "+c.Reason)
		}
	}
	return slices.Compact(all)
}
