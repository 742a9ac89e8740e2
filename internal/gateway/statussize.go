package gateway

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// A status needs at most maxStatusSize bytes in JSON, and maxEntrySize for each listener
// or parent, plus the listener and parent names, which the API makes it repeat.
const (
	maxStatusSize = 8 << 10
	maxEntrySize  = 1 << 10
)

// The sizes of a status's parts without the values whose length varies.
const (
	sizeOfCondition = len(`{"type":"","status":"","observedGeneration":,"lastTransitionTime":"2006-01-02T15:04:05Z","reason":"","message":""},`)
	sizeOfListener  = len(`{"name":"","supportedKinds":[],"attachedRoutes":2147483647,"conditions":[]},`)
	sizeOfKind      = len(`{"group":"gateway.networking.k8s.io","kind":"HTTPRoute"},`)
	sizeOfParent    = len(`{"parentRef":,"controllerName":"","conditions":[]},`)
	sizeOfStatus    = len(`{"addresses":[{"type":"Hostname","value":"00000000-0000-0000-0000-000000000000.cfargotunnel.com"}],"attachedListenerSets":2147483647,"conditions":[],"listeners":[]}`)
	// sizeOfEntryConditions is about what a listener's or parent's conditions take
	// without their messages.
	sizeOfEntryConditions = 700
)

// conditionSize returns a condition's size without its message.
func conditionSize(c *metav1.Condition) int {
	return sizeOfCondition + len(c.Type) + len(c.Status) + len(c.Reason) + len(strconv.FormatInt(c.ObservedGeneration, 10))
}

// listenerMessageSize returns the size for a list in a listener's message, when its owner
// has n listeners. Each of their statuses has space for one such message.
func listenerMessageSize(n int) int {
	const others = 160 // a listener's other messages
	return min(message.MaxSize, maxEntrySize+maxStatusSize/(2*n)-sizeOfEntryConditions-others)
}

// routeMessageSize returns the size for a list in a message on a route with n parents.
// Each parent repeats up to three such messages; [limitParentMessages] cuts them in the
// rare case of four.
func routeMessageSize(n int) int {
	const messages = 3
	return min(message.MaxSize, (maxEntrySize+maxStatusSize/max(1, n)-sizeOfParent)/messages-sizeOfCondition-len("PartiallyInvalidTrueUnsupportedValue0"))
}

// limitListenerMessages cuts the longest messages on the listeners of one owner, so that
// the status with the owner's conditions stays within its budget.
func limitListenerMessages[S gatewayv1.ListenerStatus | gatewayv1.ListenerEntryStatus](owner []metav1.Condition, listeners []S) {
	space := maxStatusSize - sizeOfStatus + len(listeners)*(maxEntrySize-sizeOfListener)
	for i := range owner {
		space -= conditionSize(&owner[i]) + message.Size(owner[i].Message)
	}
	entries := make([][]metav1.Condition, len(listeners))
	for i := range listeners {
		l := gatewayv1.ListenerStatus(listeners[i])
		space -= len(l.SupportedKinds) * sizeOfKind
		entries[i] = l.Conditions
	}
	limitMessages(entries, space)
}

// limitParentMessages does the same for a route's parents. The route's spec has n
// parents, which can belong to several Gateways.
func limitParentMessages(parents []gatewayv1.RouteParentStatus, n int) {
	entries := make([][]metav1.Condition, len(parents))
	for i := range parents {
		entries[i] = parents[i].Conditions
	}
	limitMessages(entries, len(parents)*(maxEntrySize-sizeOfParent+(maxStatusSize-sizeOfStatus)/max(1, n)))
}

// limitMessages cuts the longest messages to the same size, so that all conditions fit into
// the space.
func limitMessages(entries [][]metav1.Condition, space int) {
	var sizes []int
	total := 0
	for _, conditions := range entries {
		for i := range conditions {
			space -= conditionSize(&conditions[i])
			sizes = append(sizes, message.Size(conditions[i].Message))
			total += sizes[len(sizes)-1]
		}
	}
	if total <= space {
		return
	}
	limit := equalShare(sizes, space)
	for _, conditions := range entries {
		for i := range conditions {
			conditions[i].Message = message.Cut(conditions[i].Message, limit)
		}
	}
}

// equalShare returns the largest limit with which the sizes fit into the space, which is
// smaller than their sum.
func equalShare(sizes []int, space int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := space / (len(sizes) - i); size > share {
			return share
		}
		space -= size
	}
	return space
}
