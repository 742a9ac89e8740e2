package gateway

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// DroppedRule is what a tunnel's ingress rule cannot express of a route's rule.
type DroppedRule struct {
	// Rule is the rule's number, from 0.
	Rule int
	// Fields are the names of what is not supported, without repetition.
	Fields []string
}

func (d *DroppedRule) add(fields []string) {
	for _, field := range fields {
		if !slices.Contains(d.Fields, field) {
			d.Fields = append(d.Fields, field)
		}
	}
}

// describeDropped begins as the API demands: "the message for this condition
// MUST start with the prefix "Dropped Rule"". (RouteConditionPartiallyInvalid)
func describeDropped(dropped []DroppedRule) string {
	parts := make([]string, len(dropped))
	for i, d := range dropped {
		word := "rule"
		if i == 0 {
			word = "Dropped Rule"
		}
		parts[i] = fmt.Sprintf("%s %d: %s", word, d.Rule, strings.Join(d.Fields, ", "))
	}
	return strings.Join(parts, "; ")
}

// translateMatch returns the part of a match that a tunnel can tell apart, its
// path, or the fields that it cannot: such a match is left out.
func translateMatch(match gatewayv1.HTTPRouteMatch) (pathMatch, []string) {
	var fields []string
	path, err := newPathMatch(match.Path)
	if err != nil {
		fields = append(fields, err.Error())
	}
	if len(match.Headers) > 0 {
		fields = append(fields, "headers match")
	}
	if len(match.QueryParams) > 0 {
		fields = append(fields, "queryParams match")
	}
	if match.Method != nil {
		fields = append(fields, "method match")
	}
	return path, fields
}

// unsupportedActions names what a rule asks to be done that a tunnel cannot
// do: such a rule answers 500, so that its requests never fall to a wider rule
// that lacks, say, the filter.
func unsupportedActions(rule *gatewayv1.HTTPRouteRule) []string {
	var dropped DroppedRule
	for _, filter := range rule.Filters {
		dropped.add([]string{fmt.Sprintf("filter %s", filter.Type)})
	}
	serving := 0
	for _, backend := range rule.BackendRefs {
		if weight(backend) == 0 {
			continue
		}
		serving++
		for _, filter := range backend.Filters {
			dropped.add([]string{fmt.Sprintf("backendRef filter %s", filter.Type)})
		}
	}
	if serving > 1 {
		dropped.add([]string{fmt.Sprintf("%d backendRefs of non-zero weight", serving)})
	}
	if t := rule.Timeouts; t != nil && (t.Request != nil || t.BackendRequest != nil) {
		dropped.add([]string{"timeouts"})
	}
	if rule.Retry != nil {
		dropped.add([]string{"retry"})
	}
	if rule.SessionPersistence != nil {
		dropped.add([]string{"sessionPersistence"})
	}
	return dropped.Fields
}

// weight: "If unspecified, weight defaults to 1." (BackendRef.Weight)
func weight(backend gatewayv1.HTTPBackendRef) int32 { return ptr.Deref(backend.Weight, 1) }
