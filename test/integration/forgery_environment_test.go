package integration

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The kinds of settings that an attacker's Gateway can have.
const (
	validSettings   = "valid"
	invalidSettings = "invalid"
	pausedSettings  = "paused"
)

// forgery is one attack. An annotation on the attacker's Gateway, and in some cases its
// settings, name the tunnel of a victim's Gateway.
type forgery struct {
	index int
	// origin is the tunnel's origin in the forged record: "created" or "adopted".
	origin string
	// otherAccount is set if the attacker's GatewayClass uses a different account
	// than the victim's class.
	otherAccount bool
	settings     string
	// deletesGateway is set if the attacker deletes the Gateway after the attack.
	deletesGateway bool
	// whileStopped is set if the attack happens while the controller is stopped.
	whileStopped bool

	victim, attacker *gatewayv1.Gateway
	// before is the state of the victim's tunnel before the attack.
	before tunnelState
}

// allForgeries returns a forgery for each combination of properties.
func allForgeries() []*forgery {
	var all []*forgery
	for _, origin := range []string{"created", "adopted"} {
		for _, other := range []bool{false, true} {
			for _, settings := range []string{validSettings, invalidSettings, pausedSettings} {
				for _, deletes := range []bool{false, true} {
					for _, stopped := range []bool{false, true} {
						all = append(all, &forgery{
							index: len(all), origin: origin, otherAccount: other, settings: settings, deletesGateway: deletes, whileStopped: stopped,
						})
					}
				}
			}
		}
	}
	return all
}

// String describes the attack.
func (f *forgery) String() string {
	account, gatewayAction, timing := "same account", "Gateway kept", "while the controller runs"
	if f.otherAccount {
		account = "different account"
	}
	if f.deletesGateway {
		gatewayAction = "Gateway deleted"
	}
	if f.whileStopped {
		timing = "while the controller is stopped"
	}
	return strings.Join([]string{"origin " + f.origin, account, f.settings + " settings", gatewayAction, timing}, ", ")
}

// classGroup identifies the two GatewayClasses that the attack uses. Each has its own API
// token, because the controller limits the requests per token.
func (f *forgery) classGroup() string {
	if f.otherAccount {
		return "other-" + f.settings
	}
	return "same-" + f.settings
}

func (f *forgery) hostname() string { return fmt.Sprintf("victim-%02d.example.com", f.index) }

// record returns the forged record. It contains everything that can help the
// attacker: a policy that deletes the victim's tunnel, and permission to replace
// its configuration.
func (f *forgery) record(env *environment) string {
	return fmt.Sprintf(`{"controller":%q,"account":%q,"tunnel":%q,"origin":%q,"policy":"Delete","takenOver":true}`,
		env.controllerName, env.victimAccount(f), f.before.tunnel, f.origin)
}

func (env *environment) victimAccount(f *forgery) string { return f.classGroup() }

func (env *environment) attackerAccount(f *forgery) string {
	if f.otherAccount {
		return "attackers-of-" + f.classGroup()
	}
	return env.victimAccount(f)
}

func (env *environment) victimClass(f *forgery) string {
	return env.namespace + "-victims-" + f.classGroup()
}
func (env *environment) attackerClass(f *forgery) string {
	return env.namespace + "-attackers-" + f.classGroup()
}

// attackEnvironment is an environment in which Gateways in a separate namespace attack
// the Gateways in the environment's namespace.
type attackEnvironment struct {
	*environment
	forgeries         []*forgery
	attackerNamespace string
}

// newAttackEnvironment creates the GatewayClasses, and the attackers' Gateways with a
// GatewayClass that does not exist yet. If two Gateways claim a tunnel, the older one
// wins, so the attackers' Gateways are created before the victims' Gateways. If both are
// created in the same second, the attackers' Gateways win by namespace and name.
func newAttackEnvironment(forgeries []*forgery) *attackEnvironment {
	GinkgoHelper()
	env := &attackEnvironment{environment: newEnvironment(), forgeries: forgeries}
	env.attackerNamespace = env.namespace + "-attackers"
	env.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.attackerNamespace}})
	groups := map[string]bool{}
	for _, f := range forgeries {
		f.attacker = env.gateway(fmt.Sprintf("attacker-%02d", f.index), fmt.Sprintf("attacker-%02d.example.com", f.index))
		f.attacker.Namespace, f.attacker.Spec.GatewayClassName = env.attackerNamespace, "none-yet"
		env.create(f.attacker)
		if !groups[f.classGroup()] {
			groups[f.classGroup()] = true
			env.createAccountClass(env.victimClass(f), env.victimAccount(f))
			env.createAccountClass(env.attackerClass(f), env.attackerAccount(f))
		}
	}
	return env
}

// createAccountClass creates a GatewayClass that uses the account, with its own API token
// and without connectors. It lets its Gateways name existing tunnels, and does not limit
// the number of tunnels.
func (env *environment) createAccountClass(name, account string) {
	GinkgoHelper()
	env.create(
		&corev1.Secret{ObjectMeta: objectMetaIn(env.controllerNamespace, name), Data: map[string][]byte{"token": []byte(name)}},
		env.classSettings(name, v1alpha1.TunnelConfigurationSpec{
			Account:              &v1alpha1.Account{AccountID: &account, APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: name}},
			Connector:            &v1alpha1.Connector{Enabled: ptr.To(false)},
			AllowedGatewayFields: []v1alpha1.GatewayField{"tunnel.existing", "tunnel.deletionPolicy"},
			Limits:               &v1alpha1.Limits{TunnelsPerNamespace: ptr.To[int32](1000)},
			Tunnel:               &v1alpha1.TunnelSettings{DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyDelete)},
		}),
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.GatewayClassSpec{
			ControllerName: gatewayv1.GatewayController(env.controllerName),
			ParametersRef: &gatewayv1.ParametersReference{
				Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: name, Namespace: ptr.To(gatewayv1.Namespace(env.controllerNamespace)),
			},
		}},
	)
}

// createVictims creates the victims' Gateways and waits until they are served.
func (env *attackEnvironment) createVictims(ctx context.Context) {
	GinkgoHelper()
	env.create(env.service("web"))
	for _, f := range env.forgeries {
		f.victim = env.gateway(fmt.Sprintf("victim-%02d", f.index), f.hostname())
		f.victim.Spec.GatewayClassName = gatewayv1.ObjectName(env.victimClass(f))
		env.create(f.victim, env.route(f.victim.Name, "web", gatewayParent(f.victim.Name)))
	}
	for _, f := range env.forgeries {
		Eventually(env.get).WithArguments(f.victim.Name, f.hostname(), "/").Should(Equal("web"))
		Eventually(programmed(f.victim)).Should(Equal("True Programmed"))
	}
	env.waitUntilQuiet(ctx)
	for _, f := range env.forgeries {
		f.before = env.tunnelState(env.tunnel(f.victim.Name))
	}
}

// attack performs the attacks and waits until the controller has reacted.
func (env *attackEnvironment) attack(ctx context.Context, forgeries []*forgery) {
	GinkgoHelper()
	env.createForgeries(forgeries)
	env.waitForStatus(forgeries)
	env.deleteAttackers(forgeries)
	env.waitForStatus(forgeries)
	env.waitUntilQuiet(ctx)
}

// attackWhileStopped performs the attacks while the controller is stopped,
// starts it, and waits until it has reacted.
func (env *attackEnvironment) attackWhileStopped(ctx context.Context, forgeries []*forgery) {
	GinkgoHelper()
	env.stop()
	env.createForgeries(forgeries)
	env.deleteAttackers(forgeries)
	env.cloudflare.ResetRequests()
	env.start()
	env.waitForStatus(forgeries)
	// The controller may reconcile the attackers' Gateways before it has read the
	// victims' tunnels. Reconcile them again after that.
	Eventually(env.cloudflare.Count).WithArguments("GET", configurationPath).Should(BeNumerically(">=", len(env.forgeries)))
	for _, f := range forgeries {
		env.updateIfPresent(f.attacker, func(g *gatewayv1.Gateway) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, "example.com/reconcile", "again")
		})
	}
	env.waitUntilQuiet(ctx)
}

// createForgeries adds the forged records to the attackers' Gateways.
func (env *attackEnvironment) createForgeries(forgeries []*forgery) {
	GinkgoHelper()
	for _, f := range forgeries {
		env.createAttackerSettings(f)
		env.updateIfPresent(f.attacker, func(g *gatewayv1.Gateway) {
			g.Annotations = map[string]string{
				"tunnelgateway.dev/tunnel": f.record(env.environment), "tunnelgateway.dev/takeover": "true", "tunnelgateway.dev/deletion-policy": "Delete",
			}
			if f.settings == pausedSettings {
				g.Annotations[v1alpha1.PausedAnnotation] = "true"
			}
			g.Spec.GatewayClassName = gatewayv1.ObjectName(env.attackerClass(f))
			g.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
				Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: f.attacker.Name,
			}}
		})
	}
}

// createAttackerSettings creates the TunnelConfiguration for the attacker's Gateway,
// except for invalid settings: that Gateway refers to a TunnelConfiguration that does not
// exist. If the forged record has the origin "adopted", the settings name the victim's
// tunnel too.
func (env *attackEnvironment) createAttackerSettings(f *forgery) {
	GinkgoHelper()
	if f.settings == invalidSettings {
		return
	}
	settings := env.gatewaySettings(f.attacker.Name, v1alpha1.TunnelConfigurationSpec{})
	settings.Namespace = env.attackerNamespace
	if f.origin == "adopted" {
		settings.Spec.Tunnel = &v1alpha1.TunnelSettings{
			Existing: &v1alpha1.ExistingTunnel{ID: f.before.tunnel}, DeletionPolicy: ptr.To(v1alpha1.DeletionPolicyDelete),
		}
	}
	env.create(settings)
}

// If an attack ends with a deletion, deleteAttackers deletes its Gateway. It deletes a
// paused Gateway before it ends the pause.
func (env *attackEnvironment) deleteAttackers(forgeries []*forgery) {
	GinkgoHelper()
	for _, f := range forgeries {
		if !f.deletesGateway {
			continue
		}
		env.delete(f.attacker)
		env.updateIfPresent(f.attacker, func(g *gatewayv1.Gateway) { delete(g.Annotations, v1alpha1.PausedAnnotation) })
	}
}

// updateIfPresent updates the Gateway, unless it is deleted.
func (env *attackEnvironment) updateIfPresent(g *gatewayv1.Gateway, mutate func(*gatewayv1.Gateway)) {
	GinkgoHelper()
	Eventually(func() error { return client.IgnoreNotFound(updateAs(kube, g, mutate)) }).Should(Succeed())
}

// waitForStatus waits until each attacker's Gateway is deleted, or until its
// status describes its current generation. A deletion increments the generation
// too.
func (env *attackEnvironment) waitForStatus(forgeries []*forgery) {
	GinkgoHelper()
	for _, f := range forgeries {
		Eventually(func(g Gomega) {
			if env.isGone(f.attacker) {
				return
			}
			conditions := conditionStatuses(f.attacker.Status.Conditions, f.attacker, "Accepted", "Programmed")
			g.Expect(conditions).To(HaveEach(Or(Equal("True"), HavePrefix("False"))))
		}).Should(Succeed(), f.String())
	}
}

// waitUntilQuiet waits until the controller has neither written a Gateway's status nor
// called the Cloudflare API for two seconds.
func (env *attackEnvironment) waitUntilQuiet(ctx context.Context) {
	GinkgoHelper()
	victims, attackers := env.environment, *env.environment
	attackers.namespace = env.attackerNamespace
	waitUntilStable(func() string {
		return fmt.Sprint(victims.resourceVersions(ctx), attackers.resourceVersions(ctx), env.cloudflare.Count("", ""))
	})
}

// damage describes each effect that the attack had on its victim.
func (env *attackEnvironment) damage(f *forgery) []string {
	GinkgoHelper()
	var damage []string
	if !env.isLive(f.before.tunnel) {
		damage = append(damage, "the tunnel was deleted")
	}
	if after := env.tunnelState(f.before.tunnel); after != f.before {
		damage = append(damage, fmt.Sprintf("version %d of the configuration was replaced by version %d: %s", f.before.version, after.version, after.configuration))
	}
	if response := env.getThrough(f.before.tunnel, f.hostname(), "/"); response != "web" {
		damage = append(damage, fmt.Sprintf("the response for %s is %q", f.hostname(), response))
	}
	var secrets corev1.SecretList
	Expect(kube.List(context.Background(), &secrets, client.InNamespace(env.attackerNamespace))).To(Succeed())
	for _, secret := range secrets.Items {
		for key, value := range secret.Data {
			if _, tunnel, err := provider.Token(value).Credentials(); err == nil && string(tunnel) == f.before.tunnel {
				damage = append(damage, fmt.Sprintf("Secret %s/%s contains the tunnel's token under the key %s", secret.Namespace, secret.Name, key))
			}
		}
	}
	return damage
}
