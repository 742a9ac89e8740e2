package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// apply creates the objects of a directory in the order of its files.
func apply(ctx context.Context, c client.Client, dir string) error {
	set, err := manifest.Read([]string{dir}, manifest.Options{Namespace: "default"})
	if err != nil {
		return err
	}
	for _, object := range set.Objects {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// waitUntilProgrammed waits until every Gateway says that its configuration
// is in effect, and every ListenerSet and route has been spoken about, which
// happens after the push that they are part of.
func waitUntilProgrammed(ctx context.Context, c client.Client) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var gateways gatewayv1.GatewayList
		var sets gatewayv1.ListenerSetList
		var routes gatewayv1.HTTPRouteList
		if err := errors.Join(c.List(ctx, &gateways), c.List(ctx, &sets), c.List(ctx, &routes)); err != nil {
			return false, err
		}
		waiting := slices.ContainsFunc(gateways.Items, func(g gatewayv1.Gateway) bool {
			return !meta.IsStatusConditionTrue(g.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		}) || slices.ContainsFunc(sets.Items, func(s gatewayv1.ListenerSet) bool {
			accepted := meta.FindStatusCondition(s.Status.Conditions, string(gatewayv1.ListenerSetConditionAccepted))
			return accepted == nil || accepted.Status == metav1.ConditionUnknown
		}) || slices.ContainsFunc(routes.Items, func(r gatewayv1.HTTPRoute) bool {
			return len(r.Status.Parents) < len(r.Spec.ParentRefs) || slices.ContainsFunc(r.Status.Parents, unresolved)
		})
		return len(gateways.Items) > 0 && !waiting, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the samples to be programmed: %w", err)
	}
	return nil
}

// unresolved reports whether the Services of a route were not there yet.
func unresolved(entry gatewayv1.RouteParentStatus) bool {
	return !meta.IsStatusConditionTrue(entry.Conditions, string(gatewayv1.RouteConditionResolvedRefs))
}

// printTable prints the effective hostname table as the statuses tell it, and
// the conditions of every object.
func printTable(ctx context.Context, c client.Client) error {
	var gateways gatewayv1.GatewayList
	var sets gatewayv1.ListenerSetList
	var routes gatewayv1.HTTPRouteList
	if err := errors.Join(c.List(ctx, &gateways), c.List(ctx, &sets), c.List(ctx, &routes)); err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "\nHOSTNAME\tPORT\tOWNER\tLISTENER\tSTATE\tROUTES")
	for _, g := range gateways.Items {
		for i, l := range g.Spec.Listeners {
			printRow(out, "Gateway", g.ObjectMeta, l, listenerStatus(g.Status.Listeners, i))
		}
	}
	for _, s := range sets.Items {
		for i, entry := range s.Spec.Listeners {
			var status gatewayv1.ListenerStatus
			if i < len(s.Status.Listeners) {
				status = gatewayv1.ListenerStatus(s.Status.Listeners[i])
			}
			printRow(out, "ListenerSet", s.ObjectMeta, gatewayv1.Listener(entry), status)
		}
	}
	fmt.Fprintln(out)
	printStatuses(out, gateways.Items, sets.Items, routes.Items)
	return out.Flush()
}

func printStatuses(out io.Writer, gateways []gatewayv1.Gateway, sets []gatewayv1.ListenerSet, routes []gatewayv1.HTTPRoute) {
	for _, g := range gateways {
		printConditions(out, "Gateway", g.ObjectMeta, "", g.Status.Conditions)
		for _, address := range g.Status.Addresses {
			fmt.Fprintf(out, "\t%s\n", address.Value)
		}
		if meta.IsStatusConditionFalse(g.Status.Conditions, gateway.TypeConnectorsReady) {
			fmt.Fprintln(out, "\t(no node runs pods here, so the connectors stay pending; the simulator serves the tunnel without them)")
		}
	}
	for _, s := range sets {
		printConditions(out, "ListenerSet", s.ObjectMeta, "", s.Status.Conditions)
	}
	for _, r := range routes {
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

func printRow(out io.Writer, kind string, owner metav1.ObjectMeta, l gatewayv1.Listener, status gatewayv1.ListenerStatus) {
	state := "Pending"
	if c := meta.FindStatusCondition(status.Conditions, string(gatewayv1.ListenerConditionProgrammed)); c != nil {
		state = c.Reason
	}
	fmt.Fprintf(out, "%s\t%d %s\t%s %s/%s\t%s\t%s\t%d\n", ptr.Deref(l.Hostname, "*"), l.Port, l.Protocol,
		kind, owner.Namespace, owner.Name, l.Name, state, status.AttachedRoutes)
}

func printConditions(out io.Writer, kind string, object metav1.ObjectMeta, at string, conditions []metav1.Condition) {
	parts := make([]string, len(conditions))
	for i, c := range conditions {
		parts[i] = fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason)
	}
	fmt.Fprintf(out, "%s %s/%s%s\t%s\n", kind, object.Namespace, object.Name, at, strings.Join(parts, ", "))
}

// requests are what the samples promise: which Service answers, or with which
// status the edge does.
var requests = []struct {
	host, path string
	status     int
	service    string
}{
	{"shared.example.com", "/", http.StatusOK, "home.platform"},
	{"team-a.example.com", "/", http.StatusOK, "web.team-a"},
	{"team-a.example.com", "/api/orders", http.StatusOK, "api.team-a"},
	{"team-a.example.com", "/apiary", http.StatusOK, "web.team-a"},
	{"shop.team-b.example.com", "/", http.StatusOK, "shop.team-b"},
	{"blog.team-b.example.com", "/", http.StatusNotFound, ""},
	{"nobody.example.com", "/", http.StatusNotFound, ""},
}

// tryRequests makes the requests through the tunnel and prints the answers.
func tryRequests(ctx context.Context, address string) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "\nREQUEST\tANSWER\tRIGHT")
	wrong := 0
	for _, want := range requests {
		status, body, err := get(ctx, address+want.path, want.host)
		if err != nil {
			return err
		}
		verdict := "yes"
		if status != want.status || !strings.HasPrefix(body, want.service) {
			wrong++
			verdict = fmt.Sprintf("no, should be %d from %q", want.status, want.service)
		}
		fmt.Fprintf(out, "%s%s\t%d %s\t%s\n", want.host, want.path, status, strings.TrimSpace(body), verdict)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d answers are wrong", wrong, len(requests))
	}
	fmt.Printf("\nAll %d answers are right.\n", len(requests))
	return nil
}

func get(ctx context.Context, url, host string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return response.StatusCode, string(body), err
}
