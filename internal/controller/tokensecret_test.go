package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// remoteToken returns the token as Cloudflare has it.
func (h *harness) remoteToken() provider.Token {
	h.t.Helper()
	token, err := h.cloud.Token(h.t.Context(), h.tunnelID())
	if err != nil {
		h.t.Fatal(err)
	}
	h.cloud.ResetCalls()
	return token
}

func (h *harness) wantCurrentToken() {
	h.t.Helper()
	if got, want := h.token(), h.remoteToken(); string(got) != string(want) {
		h.t.Error("the Secret does not hold the tunnel's token")
	}
}

func TestTokenSecretIsRepaired(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.wantCurrentToken()
	secret := &corev1.Secret{}
	if err := h.kube.Get(t.Context(), sharedConnectors, secret); err != nil {
		t.Fatal(err)
	}
	owner := metav1.GetControllerOf(secret)
	if owner == nil || owner.UID != h.tunnelObject().UID || ptr.Deref(owner.BlockOwnerDeletion, true) {
		t.Errorf("the owner is %+v", owner)
	}
	for name, change := range map[string]func(*testing.T){
		"deleted": func(*testing.T) { h.delete(secret) },
		"emptied": func(*testing.T) { h.change(secret.Namespace, secret.Name, secret, func() { secret.Data = nil }) },
		"replaced by the token of another tunnel": func(t *testing.T) {
			other, err := h.cloud.Token(t.Context(), h.createUnmanagedTunnel("by hand"))
			if err != nil {
				t.Fatal(err)
			}
			h.change(secret.Namespace, secret.Name, secret, func() { secret.Data = map[string][]byte{connector.TokenKey: []byte(other)} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			change(t)
			h.reconcileFor(time.Second)
			h.wantCurrentToken()
		})
	}
	h.cloud.ResetCalls()
	h.restart()
	h.reconcileFor(time.Second)
	h.wantCalls(fakeprovider.OpConfiguration) // the Secret has the token, so Cloudflare is not asked
}

// A Secret of somebody else is not overwritten.
func TestSecretOfAnotherOwnerIsNotOverwritten(t *testing.T) {
	theirs := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: sharedConnectors.Namespace, Name: sharedConnectors.Name}, Data: map[string][]byte{"theirs": []byte("x")},
	}
	h := newConnectorHarness(t, theirs)
	h.reconcileFor(time.Minute)
	h.wantConnectorWrites()
	h.wantReady(v1alpha1.TunnelServing, tunnel.ReasonObjectTaken)
	h.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure)
	h.delete(theirs)
	h.reconcileFor(time.Second)
	h.wantCurrentToken()
	if h.deployment() == nil {
		t.Error("the connectors do not run")
	}
}

// When the Tunnel object is deleted, its Secret and its connectors are collected
// and created again, for the same tunnel.
func TestDeletedTunnelObjectIsRecreated(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	before, id := h.tunnelObject(), h.tunnelID()
	h.delete(before)
	h.reconcileFor(time.Second) // before Kubernetes has collected anything
	for _, object := range h.connectorObjects() {
		if object.GetObjectKind().GroupVersionKind().Kind != "Secret" && metav1.GetControllerOf(object).UID == before.UID {
			t.Errorf("%T %s still belongs to the former Tunnel", object, object.GetName())
		}
	}
	h.collectGarbage()
	h.reconcileFor(time.Second)
	if h.tunnelID() != id || len(h.cloud.LiveTunnels()) != 1 {
		t.Errorf("the Gateway has tunnel %s of %+v", h.tunnelID(), h.cloud.LiveTunnels())
	}
	h.wantCurrentToken()
	h.wantKinds("Deployment", "NetworkPolicy", "Secret", "ServiceAccount")
	if after := h.tunnelObject(); after.UID == before.UID || metav1.GetControllerOf(h.deployment()).UID != after.UID {
		t.Error("the connectors do not belong to the new Tunnel")
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// Connectors that are lost raise a doubt about the token, and it is read again. A
// token that nothing seems wrong with is read once a day.
func TestTokenReplacedAtCloudflareIsReadAgain(t *testing.T) {
	t.Run("and connectors are lost", func(t *testing.T) {
		h := newConnectorHarness(t)
		h.reconcileFor(time.Second)
		h.rollOut()
		if err := h.cloud.RotateToken(t.Context(), h.tunnelID()); err != nil {
			t.Fatal(err)
		}
		h.cloud.Crash(h.tunnelID())
		i := h.inventory()
		if err := i.checkAccounts(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.cloud.ResetCalls()
		h.reconcileFor(time.Second)
		h.wantCalls(fakeprovider.OpToken)
		h.wantCurrentToken()
		h.rollOut()
		if got := h.pods()[0].Annotations[connector.TokenVersionAnnotation]; got != tokenVersion(h.token()) {
			t.Error("the connectors do not get the new token")
		}
	})
	t.Run("and connectors stay", func(t *testing.T) {
		h := newConnectorHarness(t)
		h.reconcileFor(time.Second)
		if err := h.cloud.RotateToken(t.Context(), h.tunnelID()); err != nil {
			t.Fatal(err)
		}
		h.cloud.ResetCalls()
		h.reconcileFor(25 * time.Hour)
		if got := len(h.cloud.Calls(fakeprovider.OpToken)); got < 1 || got > 2 {
			t.Errorf("the token was read %d times within a day", got)
		}
		h.wantCurrentToken()
	})
}

// A rotation on demand: the new token is at Cloudflare, in the Secret and in every
// pod before the old connectors are disconnected.
func TestRotationOnDemand(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	h.rollOut()
	h.reconcileFor(time.Second)
	before, old := h.token(), h.pods()
	h.cloud.ResetCalls()
	h.requestRotation()
	h.reconcileFor(time.Second)
	h.wantCalls(fakeprovider.OpConnections, fakeprovider.OpRotateToken, fakeprovider.OpToken)
	if got := h.tunnelObject().Status.Token; got.Phase != v1alpha1.TokenRolling || got.Requested != "1" {
		t.Errorf("the rotation is recorded as %+v", got)
	}
	h.wantCurrentToken()
	if string(h.token()) == string(before) || h.deployment().Spec.Template.Annotations[connector.TokenVersionAnnotation] != tokenVersion(h.token()) {
		t.Error("the pods do not get the new token")
	}
	h.reconcileFor(10 * time.Minute)
	if len(h.cloud.Calls(fakeprovider.OpDisconnect)) > 0 {
		t.Fatal("connectors were disconnected before the others run")
	}

	h.stopPods() // the rollout leaves one connector behind that has connected with the old token
	h.rollOut()
	h.cloud.SetConnected(h.tunnelID(), true)
	leftBehind := old[0]
	leftBehind.ResourceVersion, leftBehind.Name = "", "left-behind"
	h.create(&leftBehind)
	h.reconcileFor(time.Minute)
	if h.tunnelObject().Status.Token.Phase != v1alpha1.TokenRolling {
		t.Error("the rotation goes on while a pod has the old token")
	}
	h.delete(&leftBehind)
	h.reconcileFor(time.Minute)
	if got := h.tunnelObject().Status.Token; got.Phase != "" || got.Requested != "1" {
		t.Errorf("the rotation is recorded as %+v", got)
	}
	h.wantEvent("TokenRotated")
	h.cloud.ResetCalls()
	h.reconcileFor(5 * time.Minute)
	if len(h.cloud.Calls(fakeprovider.OpRotateToken, fakeprovider.OpDisconnect)) > 0 {
		t.Error("the token is rotated again")
	}
}

// Connectors that run with the old token are disconnected, one by one; those with
// the new one are not.
func TestRotationDisconnectsOldConnectors(t *testing.T) {
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	h.rollOut()
	h.reconcileFor(time.Second)
	h.requestRotation()
	h.reconcileFor(time.Second)
	for _, pod := range h.pods() { // the pods end, and Cloudflare still lists their connectors as connected
		h.delete(&pod)
	}
	h.advance(time.Second)
	h.rollOut()
	current := map[string]bool{}
	for _, pod := range h.pods() {
		current[pod.Name] = true
	}
	h.cloud.ResetCalls()
	h.reconcileFor(time.Minute)
	disconnected := h.cloud.Calls(fakeprovider.OpDisconnect)
	if len(disconnected) != 2 || current[string(disconnected[0].Connector)] || current[string(disconnected[1].Connector)] {
		t.Errorf("disconnected are %+v, the current ones are %v", disconnected, current)
	}
	left, err := h.cloud.Connections(t.Context(), h.tunnelID())
	if err != nil || len(left) != 2 {
		t.Errorf("the connectors are %+v: %v", left, err)
	}
}

// The token is not rotated where the controller cannot replace the connectors.
func TestBlockedRotationKeepsTheToken(t *testing.T) {
	t.Run("connectors are disabled", func(t *testing.T) {
		h := newHarness(t)
		h.reconcileFor(time.Second)
		h.requestRotation()
		h.reconcileFor(time.Minute)
		h.wantReady(v1alpha1.TunnelServing, tunnel.ReasonRotationBlocked)
		if len(h.cloud.Calls(fakeprovider.OpRotateToken)) > 0 {
			t.Error("the token was rotated")
		}
	})
	t.Run("another connector runs", func(t *testing.T) {
		h := newConnectorHarness(t)
		h.reconcileFor(time.Second)
		h.rollOut()
		if _, err := h.cloud.StartConnector(h.token()); err != nil {
			t.Fatal(err)
		}
		h.requestRotation()
		h.reconcileFor(5 * time.Minute)
		h.wantReady(v1alpha1.TunnelServing, tunnel.ReasonRotationBlocked)
		if len(h.cloud.Calls(fakeprovider.OpRotateToken)) > 0 {
			t.Error("the token was rotated")
		}
	})
	t.Run("the Gateway is paused", func(t *testing.T) {
		h := newConnectorHarness(t)
		h.reconcileFor(time.Second)
		h.rollOut()
		h.annotate(v1alpha1.PausedAnnotation, "true")
		h.requestRotation()
		h.reconcileFor(time.Minute)
		if len(h.cloud.Calls(fakeprovider.OpRotateToken)) > 0 {
			t.Error("the token was rotated")
		}
	})
}

// A scheduled rotation comes after its interval, and one Tunnel rotates at a time.
func TestOnlyOneTunnelRotatesAtATime(t *testing.T) {
	other := newTunnel("other", "t-1")
	other.Status.Token.Phase = v1alpha1.TokenRolling
	h := newConnectorHarness(t, other)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Connector.TokenRotation = ptr.To(v1alpha1.Duration("24h"))
	})
	h.reconcileFor(time.Second)
	h.rollOut()
	h.reconcileFor(23 * time.Hour)
	h.cloud.ResetCalls()
	h.reconcileFor(4 * time.Hour)
	if len(h.cloud.Calls(fakeprovider.OpRotateToken)) > 0 {
		t.Fatal("two tokens are rotated at a time")
	}
	h.delete(other)
	h.reconcileFor(2 * time.Minute)
	if got := len(h.cloud.Calls(fakeprovider.OpRotateToken)); got != 1 {
		t.Errorf("the token was rotated %d times", got)
	}
}

// countSecretReads counts the reads of Secrets from the API server.
func (h *harness) countSecretReads(do func()) int {
	h.t.Helper()
	n := 0
	h.lifecycle.tokens.live = countingReader{h.kube, &n}
	do()
	return n
}

// The contents of the Secret are read only when it has changed.
func TestTokenSecretIsReadOnce(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	if got := h.countSecretReads(func() { h.reconcileFor(time.Hour) }); got != 0 {
		t.Errorf("the Secret was read %d times", got)
	}
}
