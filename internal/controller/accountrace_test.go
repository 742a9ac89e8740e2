package controller

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func TestConcurrentCallersOpenAnAccountOnce(t *testing.T) {
	// Both workers find no open account and connect at the same time. They must then use
	// the same provider, because each provider may have its own request budget.
	var connecting sync.WaitGroup
	connecting.Add(2)
	s := newAccountFixture(t)
	s.connect = func(string, string) (provider.Provider, error) {
		connecting.Done()
		connecting.Wait()
		return fakeprovider.New(), nil
	}
	var opened [2]account
	var workers sync.WaitGroup
	for i := range opened {
		workers.Go(func() {
			opened[i], _ = s.openSource(context.Background(), credentials.Source{Account: "account", Token: "token"})
		})
	}
	workers.Wait()
	if opened[0].provider == nil || opened[0] != opened[1] {
		t.Errorf("the workers use %+v and %+v, want the same provider", opened[0], opened[1])
	}
}

// blockingReader blocks every read until it is released.
type blockingReader struct {
	client.Reader
	reading chan<- struct{}
	release <-chan struct{}
}

// Get implements client.Reader.
func (r blockingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	r.reading <- struct{}{}
	<-r.release
	return r.Reader.Get(ctx, key, object, options...)
}

// newGatewayWithAccount returns the objects behind Gateway infra/slow. Its account's
// API token is in a Secret.
func newGatewayWithAccount() []client.Object {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "token"}, Data: map[string][]byte{"token": []byte("other")}}
	configuration := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "slow"}}
	configuration.Spec.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)}
	configuration.Spec.Account = &v1alpha1.Account{
		AccountID: ptr.To(fakeprovider.AccountID), APITokenSecretRef: &v1alpha1.SecretKeyReference{Name: "token"},
	}
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "slow"},
		Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName, ParametersRef: &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "slow", Namespace: ptr.To(gatewayv1.Namespace(controllerNamespace)),
		}},
	}
	g := newGateway("slow", "slow.example.com")
	g.Spec.GatewayClassName = "slow"
	return []client.Object{secret, configuration, class, g}
}

func TestBlockedReadOfASecretDelaysNoOtherGateway(t *testing.T) {
	// While the API server does not return one account's Secret, the controller handles
	// events and pushes a change to a Gateway with another account.
	h := newHarness(t, newGatewayWithAccount()...)
	reading, release := make(chan struct{}), make(chan struct{})
	h.accounts.live = blockingReader{h.kube, reading, release}
	slow := state.GatewayKey("infra", "slow")
	blocked := make(chan error)
	go func() {
		_, err := h.Reconcile(context.Background(), slow)
		blocked <- err
	}()
	wait(t, "the read of the Secret", reading)

	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		w := watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace}
		keys, err := w.fromSecret(context.Background(), secrets.Metadata(client.ObjectKey{Namespace: controllerNamespace, Name: "token"}))
		if err != nil || len(keys) != 1 || keys[0] != slow {
			t.Errorf("the event of the Secret affects %v, %v, want only %s", keys, err, slow)
		}
		if _, err := h.Reconcile(context.Background(), h.key); err != nil {
			t.Error(err)
		}
	}()
	wait(t, "the push for the other Gateway", pushed)
	if got := h.servedHostname(); got != "a.example.com" {
		t.Errorf("the tunnel serves %q, want a.example.com", got)
	}
	close(release)
	go func() {
		for range reading { // later reads do not block
		}
	}()
	if err := <-blocked; err != nil {
		t.Error(err)
	}
	close(reading)
}

// wait waits until the channel receives or is closed. The timeout only ends a test that
// fails.
func wait(t *testing.T, description string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("timeout while waiting for %s", description)
	}
}
