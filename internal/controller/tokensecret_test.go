package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// remoteToken returns the tunnel's current token at Cloudflare.
func (h *harness) remoteToken() provider.Token {
	h.t.Helper()
	token, err := h.cloud.Token(h.t.Context(), h.tunnelID())
	if err != nil {
		h.t.Fatal(err)
	}
	h.cloud.ResetCalls()
	return token
}

// wantCurrentToken checks that the token Secret contains the tunnel's current token.
func (h *harness) wantCurrentToken() {
	h.t.Helper()
	if got, want := h.token(), h.remoteToken(); string(got) != string(want) {
		h.t.Error("the Secret does not contain the tunnel's current token")
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
		t.Errorf("the owner is %+v, want the Tunnel", owner)
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
	h.wantCalls(fakeprovider.OpConfiguration) // the Secret contains the token, so it is not read from Cloudflare
}

func TestSecretOfAnotherOwnerIsNotOverwritten(t *testing.T) {
	// The controller does not overwrite another owner's Secret.
	conflicting := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: sharedConnectors.Namespace, Name: sharedConnectors.Name}, Data: map[string][]byte{"conflicting": []byte("x")},
	}
	h := newConnectorHarness(t, conflicting)
	h.reconcileFor(time.Minute)
	h.wantConnectorWrites()
	h.wantReady(v1alpha1.TunnelServing, conditions.ReasonObjectTaken)
	h.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure)
	h.delete(conflicting)
	h.reconcileFor(time.Second)
	h.wantCurrentToken()
	if h.deployment() == nil {
		t.Error("the connectors do not run")
	}
}

func TestDeletedTunnelObjectIsRecreated(t *testing.T) {
	// If the Tunnel object is deleted, the controller recreates it, its Secret and its
	// connectors for the same tunnel.
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	before, id := h.tunnelObject(), h.tunnelID()
	h.delete(before)
	h.reconcileFor(time.Second) // before the garbage collection
	for _, object := range h.connectorObjects() {
		if object.GetObjectKind().GroupVersionKind().Kind != "Secret" && metav1.GetControllerOf(object).UID == before.UID {
			t.Errorf("%T %s still belongs to the deleted Tunnel", object, object.GetName())
		}
	}
	h.collectGarbage()
	h.reconcileFor(time.Second)
	if h.tunnelID() != id || len(h.cloud.LiveTunnels()) != 1 {
		t.Errorf("the Gateway has tunnel %s of %+v, want only %s", h.tunnelID(), h.cloud.LiveTunnels(), id)
	}
	h.wantCurrentToken()
	h.wantKinds("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Secret", "ServiceAccount")
	if after := h.tunnelObject(); after.UID == before.UID || metav1.GetControllerOf(h.deployment()).UID != after.UID {
		t.Error("the connectors do not belong to the new Tunnel")
	}
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

func TestTokenReplacedAtCloudflareIsReadAgain(t *testing.T) {
	// The controller reads the token again when connectors are lost, and otherwise once a
	// day.
	t.Run("when connectors are lost", func(t *testing.T) {
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
			t.Error("the connectors do not have the new token")
		}
	})
	t.Run("within a day when connectors are healthy", func(t *testing.T) {
		h := newConnectorHarness(t)
		h.reconcileFor(time.Second)
		if err := h.cloud.RotateToken(t.Context(), h.tunnelID()); err != nil {
			t.Fatal(err)
		}
		h.cloud.ResetCalls()
		h.reconcileFor(25 * time.Hour)
		if got := len(h.cloud.Calls(fakeprovider.OpToken)); got < 1 || got > 2 {
			t.Errorf("the token was read %d times within a day, want 1 or 2", got)
		}
		h.wantCurrentToken()
	})
}

func TestRotationOnDemandDisconnectsOldConnectorsLast(t *testing.T) {
	// During a rotation on demand, the controller disconnects old connectors only after the
	// Secret and every pod have the new token.
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
		t.Error("the Secret or the Deployment does not have the new token")
	}
	h.reconcileFor(10 * time.Minute)
	if len(h.cloud.Calls(fakeprovider.OpDisconnect)) > 0 {
		t.Fatal("connectors were disconnected before the rollout")
	}

	h.stopPods() // after the rollout, one pod with the old token remains
	h.rollOut()
	h.cloud.SetConnected(h.tunnelID(), true)
	oldPod := old[0]
	oldPod.ResourceVersion, oldPod.Name = "", "old-pod"
	h.create(&oldPod)
	h.reconcileFor(time.Minute)
	if h.tunnelObject().Status.Token.Phase != v1alpha1.TokenRolling {
		t.Error("the rotation continued while a pod had the old token")
	}
	h.delete(&oldPod)
	h.reconcileFor(time.Minute)
	if got := h.tunnelObject().Status.Token; got.Phase != "" || got.Requested != "1" {
		t.Errorf("the rotation is recorded as %+v", got)
	}
	h.wantEvent("TokenRotated")
	h.cloud.ResetCalls()
	h.reconcileFor(5 * time.Minute)
	if len(h.cloud.Calls(fakeprovider.OpRotateToken, fakeprovider.OpDisconnect)) > 0 {
		t.Error("the token was rotated again")
	}
}

func TestWrittenTokenCountsBeforeTheCacheContainsIt(t *testing.T) {
	// The connectors get a new token although the cache still contains the Secret
	// metadata from before the write.
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	h.rollOut()
	h.reconcileFor(time.Second)
	var cached corev1.SecretList
	if err := h.kube.List(t.Context(), &cached); err != nil {
		t.Fatal(err)
	}
	h.tokens.metadata = fake.NewClientBuilder().WithScheme(Scheme()).WithLists(&cached).Build()
	before := h.token()
	h.cloud.ResetCalls()
	h.requestRotation()
	h.reconcileFor(time.Second)
	h.wantCalls(fakeprovider.OpConnections, fakeprovider.OpRotateToken, fakeprovider.OpToken)
	h.wantCurrentToken()
	if h.token() == before || h.deployment().Spec.Template.Annotations[connector.TokenVersionAnnotation] != tokenVersion(h.token()) {
		t.Error("the Secret or the Deployment does not have the new token")
	}
}

func TestRotationDisconnectsOldConnectors(t *testing.T) {
	// The controller disconnects only the connectors that run with the old token.
	h := newConnectorHarness(t)
	h.reconcileFor(time.Second)
	h.rollOut()
	h.reconcileFor(time.Second)
	h.requestRotation()
	h.reconcileFor(time.Second)
	for _, pod := range h.pods() { // Cloudflare still lists the deleted pods' connectors
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
		t.Errorf("disconnected %+v, want only connectors that are not in %v", disconnected, current)
	}
	remaining, err := h.cloud.Connections(t.Context(), h.tunnelID())
	if err != nil || len(remaining) != 2 {
		t.Errorf("the connectors are %+v, %v, want two", remaining, err)
	}
}

func TestBlockedRotationKeepsTheToken(t *testing.T) {
	// The controller does not rotate the token if it cannot replace all connectors.
	t.Run("when connectors are disabled", func(t *testing.T) {
		h := newHarness(t)
		h.reconcileFor(time.Second)
		h.requestRotation()
		h.reconcileFor(time.Minute)
		h.wantReady(v1alpha1.TunnelServing, conditions.ReasonRotationBlocked)
		if len(h.cloud.Calls(fakeprovider.OpRotateToken)) > 0 {
			t.Error("the token was rotated")
		}
	})
	t.Run("when another connector runs", func(t *testing.T) {
		h := newConnectorHarness(t)
		h.reconcileFor(time.Second)
		h.rollOut()
		if _, err := h.cloud.StartConnector(h.token()); err != nil {
			t.Fatal(err)
		}
		h.requestRotation()
		h.reconcileFor(5 * time.Minute)
		h.wantReady(v1alpha1.TunnelServing, conditions.ReasonRotationBlocked)
		if len(h.cloud.Calls(fakeprovider.OpRotateToken)) > 0 {
			t.Error("the token was rotated")
		}
	})
	t.Run("when the Gateway is paused", func(t *testing.T) {
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

func TestOnlyOneTunnelRotatesAtATime(t *testing.T) {
	// The controller rotates tokens after the configured interval, one Tunnel at a time.
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
		t.Fatal("two tokens were rotated at the same time")
	}
	h.delete(other)
	h.reconcileFor(2 * time.Minute)
	if got := len(h.cloud.Calls(fakeprovider.OpRotateToken)); got != 1 {
		t.Errorf("the token was rotated %d times, want 1", got)
	}
}

// countSecretReads counts token Secret reads from the API server during do.
func (h *harness) countSecretReads(do func()) int {
	h.t.Helper()
	n := 0
	h.tokens.live = countingReader{h.kube, &n}
	do()
	return n
}

func TestTokenSecretIsReadOnce(t *testing.T) {
	// The controller reads the Secret's data only when the Secret has changed.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	if got := h.countSecretReads(func() { h.reconcileFor(time.Hour) }); got != 0 {
		t.Errorf("the Secret was read %d times, want 0", got)
	}
}
