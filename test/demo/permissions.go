package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// permissions are the hostnames that the namespaces in the samples may use. The namespace of
// the Gateways needs them for records. Without Envoy, the namespace shop does not exist.
var permissions = map[string]string{
	"platform": "shared.example.com, " + envoyHostname, splitNamespace: envoyHostname,
	"team-a": "team-a.example.com", "team-b": "*.team-b.example.com",
}

// checkPermissions permits each team only its own hostnames, and deletes team A's
// ListenerSet for a moment. It fails if team B, whose ListenerSet has the same hostname,
// gets the hostname.
func checkPermissions(ctx context.Context, c client.Client, address string) error {
	printStep("permitting each team only the hostnames in the annotation of its namespace")
	if err := demandPermissions(ctx, c); err != nil {
		return err
	}
	if err := waitUntilNotPermitted(ctx, c); err != nil {
		return err
	}
	printStep("deleting the ListenerSet of team A")
	set := &gatewayv1.ListenerSet{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "team-a"}, set); err != nil {
		return err
	}
	if err := c.Delete(ctx, set); err != nil {
		return err
	}
	if err := waitForStatus(ctx, address, http.StatusNotFound); err != nil {
		return fmt.Errorf("team-a.example.com without its ListenerSet: %w", err)
	}
	fmt.Printf("\nteam-a.example.com/ returns 404: team B does not inherit the hostname.\n\n")
	printStep("creating the ListenerSet of team A again")
	set.ObjectMeta = metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}
	if err := c.Create(ctx, set); err != nil {
		return err
	}
	return waitForStatus(ctx, address, http.StatusOK)
}

// demandPermissions annotates the namespaces and configures the GatewayClasses, which must
// agree because they have the same zone.
func demandPermissions(ctx context.Context, c client.Client) error {
	for name, permitted := range permissions {
		namespace := &corev1.Namespace{}
		err := c.Get(ctx, client.ObjectKey{Name: name}, namespace)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, hostnames.Annotation, permitted)
		if err := c.Update(ctx, namespace); err != nil {
			return err
		}
	}
	var configurations v1alpha1.TunnelConfigurationList
	if err := c.List(ctx, &configurations, client.InNamespace(cluster.ControllerNamespace)); err != nil {
		return err
	}
	for i := range configurations.Items {
		configuration := &configurations.Items[i]
		configuration.Spec.Hostnames = &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)}
		if err := c.Update(ctx, configuration); err != nil {
			return err
		}
	}
	return nil
}

// waitUntilNotPermitted waits until the controller refuses team A's hostname to team B.
func waitUntilNotPermitted(ctx context.Context, c client.Client) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		set := &gatewayv1.ListenerSet{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "team-b", Name: "team-b-late"}, set); err != nil || len(set.Status.Listeners) == 0 {
			return false, err
		}
		accepted := conditions.TypeAccepted.Find(set.Status.Listeners[0].Conditions)
		if !conditions.ReasonHostnameNotPermitted.Is(accepted) {
			return false, nil
		}
		fmt.Printf("\nListenerSet team-b/team-b-late: %s: %s\n\n", accepted.Reason, accepted.Message)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("wait until team B may not use the hostname of team A: %w", err)
	}
	return nil
}

// waitForStatus waits until a request for team A's hostname returns the status. It fails
// if team B's backend responds.
func waitForStatus(ctx context.Context, address string, want int) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		status, body, err := get(ctx, address+"/", "team-a.example.com")
		if err == nil && status == http.StatusOK && !strings.HasPrefix(body, "web.team-a") {
			return false, fmt.Errorf("%s answers for team-a.example.com", body)
		}
		return status == want, err
	})
}
