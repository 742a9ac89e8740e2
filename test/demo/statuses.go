package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// printStatuses prints the listeners with their hostnames, as their statuses report them,
// and every object's conditions.
func printStatuses(ctx context.Context, c client.Client) error {
	objects, err := list(ctx, c)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "\nHOSTNAME\tPORT\tOBJECT\tLISTENER\tSTATE\tROUTES")
	for _, g := range objects.gateways {
		for i, l := range g.Spec.Listeners {
			printListener(out, "Gateway", g.ObjectMeta, l, listenerStatus(g.Status.Listeners, i))
		}
	}
	for _, s := range objects.sets {
		for i, entry := range s.Spec.Listeners {
			var status gatewayv1.ListenerStatus
			if i < len(s.Status.Listeners) {
				status = gatewayv1.ListenerStatus(s.Status.Listeners[i])
			}
			printListener(out, "ListenerSet", s.ObjectMeta, gatewayv1.Listener(entry), status)
		}
	}
	fmt.Fprintln(out)
	printAllConditions(out, objects)
	return out.Flush()
}

func printAllConditions(out io.Writer, all objects) {
	for _, g := range all.gateways {
		printConditions(out, "Gateway", g.ObjectMeta, "", g.Status.Conditions)
		for _, address := range g.Status.Addresses {
			fmt.Fprintf(out, "\t%s\n", address.Value)
		}
	}
	for _, s := range all.sets {
		printConditions(out, "ListenerSet", s.ObjectMeta, "", s.Status.Conditions)
	}
	for _, r := range all.routes {
		for _, parent := range r.Status.Parents {
			printConditions(out, "HTTPRoute", r.ObjectMeta, fmt.Sprintf(" at %s %s", *parent.ParentRef.Kind, parent.ParentRef.Name), parent.Conditions)
		}
	}
}

func listenerStatus(statuses []gatewayv1.ListenerStatus, i int) gatewayv1.ListenerStatus {
	if i < len(statuses) {
		return statuses[i]
	}
	return gatewayv1.ListenerStatus{}
}

func printListener(out io.Writer, kind string, object metav1.ObjectMeta, l gatewayv1.Listener, status gatewayv1.ListenerStatus) {
	state := "Pending"
	if c := meta.FindStatusCondition(status.Conditions, string(gatewayv1.ListenerConditionProgrammed)); c != nil {
		state = c.Reason
	}
	fmt.Fprintf(out, "%s\t%d %s\t%s %s/%s\t%s\t%s\t%d\n", ptr.Deref(l.Hostname, "*"), l.Port, l.Protocol,
		kind, object.Namespace, object.Name, l.Name, state, status.AttachedRoutes)
}

func printConditions(out io.Writer, kind string, object metav1.ObjectMeta, parent string, conditions []metav1.Condition) {
	parts := make([]string, len(conditions))
	for i, c := range conditions {
		parts[i] = fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason)
	}
	fmt.Fprintf(out, "%s %s/%s%s\t%s\n", kind, object.Namespace, object.Name, parent, strings.Join(parts, ", "))
}
