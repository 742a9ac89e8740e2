package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// quiet is how long the test watches the requests when nothing changes.
const quiet = 5 * time.Second

// scenario is one run of the test.
type scenario struct {
	*bed
	from     string
	visitors *visitors
	// schema is the schema version in the Tunnels before and after the upgrade.
	schema map[string]int32
}

func newScenario(b *bed, from string) *scenario {
	return &scenario{bed: b, from: from, schema: map[string]int32{}}
}

// run runs the steps. Each depends on the earlier ones.
func (s *scenario) run(ctx context.Context) error {
	err := s.steps(ctx)
	if s.visitors == nil {
		return err
	}
	printStep("the requests")
	return errors.Join(err, s.visitors.end())
}

func (s *scenario) steps(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"install " + s.from, s.install},
		{"upgrade to the working tree, while the connectors stay", s.upgrade},
		{"protect hostnames with AccessPolicies", s.protect},
		{"stop the controllers and roll back to " + s.from, s.rollBackAsDocumented},
		{"upgrade again", s.upgradeAgain},
		{"roll back to " + s.from + " while the controllers run", s.rollBackAtOnce},
		{"upgrade again", s.upgradeAgain},
	} {
		printStep("%s", step.name)
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("    %s\n", time.Since(start).Round(time.Second))
	}
	return nil
}

// install installs the earlier version and starts the visitors.
func (s *scenario) install(ctx context.Context) error {
	err := s.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: release}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: "cloudflare"}, Data: map[string][]byte{"token": []byte(apiToken)}})
	if err != nil {
		return err
	}
	values := "cloudflare.accountID=" + account + ",cloudflare.existingSecret=cloudflare,cloudflare.baseURL=" + s.api + ",image.repository=" + repository(earlier)
	if err := s.helm(ctx, "install", release, chart(s.dir, earlier), "--set", values); err != nil {
		return err
	}
	if err := s.startNode(ctx); err != nil {
		return err
	}
	if err := s.createObjects(ctx); err != nil {
		return err
	}
	tunnels, err := s.waitForTunnels(ctx)
	if err != nil {
		return err
	}
	if s.schema[earlier], err = s.schemaVersion(ctx); err != nil {
		return err
	}
	if s.schema[earlier] == 0 {
		return errors.New("the Tunnels have no schema version; a version before the first one with it cannot be rolled back to")
	}
	if s.visitors, err = newVisitors(s.bed, tunnels); err != nil {
		return err
	}
	if err := s.served(ctx, openLabel, adminLabel); err != nil {
		return err
	}
	for _, label := range []string{openLabel, adminLabel} {
		s.visitors.load(label)
	}
	s.visitors.probe(adminLabel)
	pause(ctx, quiet)
	return nil
}

// upgrade upgrades the release. The new controllers serve the earlier version's connectors
// before they may replace them.
func (s *scenario) upgrade(ctx context.Context) error {
	before, err := s.connectorPods(ctx)
	if err != nil {
		return err
	}
	resume, err := s.holdConnectors(ctx)
	if err != nil {
		return err
	}
	if err := s.helmUpgrade(ctx); err != nil {
		return err
	}
	if err := s.serveChange(ctx, present, upgradedLabel); err != nil {
		return errors.Join(err, resume())
	}
	pause(ctx, quiet)
	after, err := s.connectorPods(ctx)
	if err := errors.Join(err, resume()); err != nil {
		return err
	}
	if !slices.Equal(before, after) {
		return fmt.Errorf("the connectors %v changed to %v while the node was unschedulable", before, after)
	}
	if err := s.waitForConnectors(ctx); err != nil {
		return err
	}
	if s.schema[present], err = s.schemaVersion(ctx); err != nil {
		return err
	}
	after, err = s.connectorPods(ctx)
	fmt.Printf("    schema version %d, then %d; connectors replaced: %t\n", s.schema[earlier], s.schema[present], !slices.Equal(before, after))
	return err
}

func (s *scenario) helmUpgrade(ctx context.Context) error {
	return s.helm(ctx, "upgrade", release, chart(s.dir, present), "--reset-then-reuse-values", "--set", "image.repository="+repository(present))
}

// serveChange waits until only the version's controllers run and serve a new hostname.
func (s *scenario) serveChange(ctx context.Context, version, label string) error {
	if err := s.waitForVersion(ctx, version); err != nil {
		return err
	}
	if err := s.createRoutes(ctx, label); err != nil {
		return err
	}
	return s.served(ctx, label)
}

func (s *scenario) createRoutes(ctx context.Context, label string) error {
	for gateway := range planes {
		if err := s.create(ctx, routeTo(label, gateway)); err != nil {
			return err
		}
	}
	return nil
}

// served waits until all Gateways serve the hostnames.
func (s *scenario) served(ctx context.Context, labels ...string) error {
	for gateway := range planes {
		for _, label := range labels {
			err := eventually(ctx, hostname(label, gateway), func(ctx context.Context) error {
				if status := s.visitors.get(ctx, label, gateway); status != http.StatusOK {
					return fmt.Errorf("status %d", status)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// waitForConnectors waits until no connector is to be replaced, for a while.
func (s *scenario) waitForConnectors(ctx context.Context) error {
	for range 2 {
		for gateway := range planes {
			if err := s.waitForRollout(ctx, connectorKey(gateway)); err != nil {
				return err
			}
		}
		pause(ctx, quiet)
	}
	return nil
}

// protect protects hostnames with a kind that the earlier version need not know.
func (s *scenario) protect(ctx context.Context) error {
	for gateway := range planes {
		configuration := &v1alpha1.TunnelConfiguration{}
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: release, Name: gateway}, configuration); err != nil {
			return err
		}
		configuration.Spec.Access = newerSettings()
		if err := errors.Join(s.kube.Update(ctx, configuration), s.create(ctx, policyFor(gateway))); err != nil {
			return err
		}
	}
	for gateway := range planes {
		if err := eventually(ctx, "AccessPolicy "+gateway, s.checkPolicy(gateway)); err != nil {
			return err
		}
	}
	s.visitors.probe(staffLabel)
	if err := s.createRoutes(ctx, staffLabel); err != nil {
		return err
	}
	if err := s.served(ctx, staffLabel); err != nil {
		return err
	}
	s.visitors.load(staffLabel)
	pause(ctx, quiet)
	return nil
}

func (s *scenario) checkPolicy(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		policy := &v1alpha1.AccessPolicy{}
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, policy); err != nil {
			return err
		}
		for _, ancestor := range policy.Status.Ancestors {
			if conditions.TypeProgrammed.IsTrue(ancestor.Conditions) {
				return nil
			}
		}
		return fmt.Errorf("the status is %+v", policy.Status)
	}
}

// rollBackAsDocumented stops the newer controllers before it rolls back, so that they do not
// read the settings with the earlier CRDs.
func (s *scenario) rollBackAsDocumented(ctx context.Context) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: release}}
	if err := s.kube.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))); err != nil {
		return err
	}
	if err := eventually(ctx, "the end of the controllers", s.checkStopped); err != nil {
		return err
	}
	return s.rollBack(ctx, func(ctx context.Context) error {
		if s.schema[earlier] < s.schema[present] {
			return s.changesNothing(ctx)
		}
		return s.serveChange(ctx, earlier, rolledBackLabel)
	})
}

func (s *scenario) checkStopped(ctx context.Context) error {
	pods, err := s.pods(ctx, isController)
	if err == nil && len(pods) > 0 {
		err = fmt.Errorf("%d pods remain", len(pods))
	}
	return err
}

// rollBackAtOnce rolls back while the newer controllers run. The hostnames that newer settings
// protect may be closed, but never open, so their load ends before.
func (s *scenario) rollBackAtOnce(ctx context.Context) error {
	s.visitors.endLoad(staffLabel)
	return s.rollBack(ctx, func(context.Context) error { return nil })
}

// rollBack rolls back to the first revision of the release. check runs before connectors can
// be replaced.
func (s *scenario) rollBack(ctx context.Context, check func(context.Context) error) error {
	resume, err := s.holdConnectors(ctx)
	if err != nil {
		return err
	}
	err = s.helm(ctx, "rollback", release, "1", "--force-conflicts")
	if err == nil {
		err = s.waitForVersion(ctx, earlier)
	}
	if err == nil {
		err = check(ctx)
	}
	pause(ctx, quiet)
	if err := errors.Join(err, resume()); err != nil {
		return err
	}
	return s.waitForConnectors(ctx)
}

// changesNothing checks that the earlier version does not act on the Tunnels.
func (s *scenario) changesNothing(ctx context.Context) error {
	for gateway := range planes {
		if err := eventually(ctx, "the fence of Gateway "+gateway, s.checkProgrammed(gateway, "False NewerVersion")); err != nil {
			return err
		}
	}
	s.edge.ResetRequests()
	if err := s.createRoutes(ctx, rolledBackLabel); err != nil {
		return err
	}
	pause(ctx, quiet)
	for gateway := range planes {
		if status := s.visitors.get(ctx, rolledBackLabel, gateway); status != http.StatusNotFound {
			return fmt.Errorf("%s returns %d, although a newer version served the Gateway", hostname(rolledBackLabel, gateway), status)
		}
	}
	if writes := s.edge.Count(http.MethodPut, "") + s.edge.Count(http.MethodPost, "") + s.edge.Count(http.MethodDelete, ""); writes > 0 {
		return fmt.Errorf("the earlier version wrote %d times to Cloudflare", writes)
	}
	return nil
}

// upgradeAgain upgrades once more, and checks that the version continues.
func (s *scenario) upgradeAgain(ctx context.Context) error {
	if err := s.helmUpgrade(ctx); err != nil {
		return err
	}
	if err := s.waitForVersion(ctx, present); err != nil {
		return err
	}
	if err := s.served(ctx, openLabel, adminLabel, upgradedLabel, staffLabel, rolledBackLabel); err != nil {
		return err
	}
	for gateway := range planes {
		if err := eventually(ctx, "Gateway "+gateway, s.checkProgrammed(gateway, "True Programmed")); err != nil {
			return err
		}
	}
	if err := s.waitForConnectors(ctx); err != nil {
		return err
	}
	if tunnels := len(s.edge.Tunnels()); tunnels != len(planes) {
		return fmt.Errorf("the account has %d tunnels, want %d", tunnels, len(planes))
	}
	return nil
}

func (s *scenario) gateway(ctx context.Context, name string) (*gatewayv1.Gateway, error) {
	g := &gatewayv1.Gateway{}
	return g, s.kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, g)
}

// schemaVersion returns the schema version that both Tunnels have.
func (s *scenario) schemaVersion(ctx context.Context) (int32, error) {
	var versions []int32
	for gateway := range planes {
		t := &v1alpha1.Tunnel{}
		key := types.NamespacedName{Namespace: namespace, Name: gateway}
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: release, Name: tunnel.ObjectName(key)}, t); err != nil {
			return 0, err
		}
		versions = append(versions, t.Status.SchemaVersion)
	}
	if slices.Min(versions) != slices.Max(versions) {
		return 0, fmt.Errorf("the Tunnels have different schema versions: %v", versions)
	}
	return versions[0], nil
}
