package authority

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

func TestSecretBelongsToTheTunnel(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	c.wantCurrent(a, object, false)
	c.write(a, object)
	c.wantCurrent(a, object, true)
	secret := c.secret(secretKey(object))
	owner := metav1.GetControllerOf(secret)
	if owner == nil || owner.UID != object.UID || ptr.Deref(owner.BlockOwnerDeletion, true) {
		t.Errorf("the owner is %+v, want the Tunnel", owner)
	}
	for key, value := range connector.Selector(object) {
		if secret.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, secret.Labels[key], value)
		}
	}
	if leaf := certificateIn(t, secret.Data).Leaf; !leaf.NotAfter.Equal(startTime.Add(90*day)) || leaf.Subject.String() != "" {
		t.Errorf("the certificate of %q ends at %s, want 90 days and no other name", leaf.Subject, leaf.NotAfter)
	}
}

// The Secret is read only after its metadata has changed, and written only if it is not
// current.
func TestSecretIsReadOnlyAfterAChange(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	c.write(a, object)
	c.wantCurrent(a, object, true)
	reads, writes := c.reads.Load(), c.writes.Load()
	for range 10 {
		c.wantCurrent(a, object, true)
		c.maintain(a)
		c.now = c.now.Add(time.Minute)
	}
	if got := c.reads.Load() - reads; got > 1 {
		t.Errorf("%d reads of unchanged Secrets in ten minutes, want at most that of the authority", got)
	}
	c.write(a, object)
	if got := c.writes.Load() - writes; got != 0 {
		t.Errorf("%d writes of current Secrets, want none", got)
	}
	reads = c.reads.Load()
	c.change(c.secret(secretKey(object)), func(s *corev1.Secret) { s.Annotations = map[string]string{"x": "y"} })
	c.wantCurrent(a, object, true)
	c.wantCurrent(a, object, true)
	if got := c.reads.Load() - reads; got != 1 {
		t.Errorf("%d reads after a change, want 1", got)
	}
	c.now = c.now.Add(60 * day)
	c.wantCurrent(a, object, false)
	if got := c.reads.Load() - reads; got != 1 {
		t.Errorf("%d reads until the renewal, want 1", got)
	}
}

func TestSecretIsRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(c *cluster, s *corev1.Secret)
		// keeps reports whether the certificate stays.
		keeps bool
	}{
		"deleted":                        {edit: func(c *cluster, s *corev1.Secret) { c.delete(s) }},
		"emptied":                        {edit: func(c *cluster, s *corev1.Secret) { c.change(s, func(s *corev1.Secret) { s.Data = nil }) }},
		"other certificate":              {edit: set(envoy.CertificateFile, "x")},
		"other key":                      {edit: set(envoy.KeyFile, "x")},
		"other bundle":                   {edit: set(envoy.CAFile, "x"), keeps: true},
		"other SDS file":                 {edit: set("sds-ca.yaml", "{}"), keeps: true},
		"no SDS file":                    {edit: set("sds-cert.yaml", ""), keeps: true},
		"labels":                         {edit: func(c *cluster, s *corev1.Secret) { c.change(s, func(s *corev1.Secret) { s.Labels = nil }) }, keeps: true},
		"key of another certificate":     {edit: copyFrom("other", envoy.KeyFile)},
		"certificate of another Gateway": {edit: copyFrom("other", envoy.CertificateFile, envoy.KeyFile)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			a, object, other := c.authority(), c.tunnel("shared"), c.tunnel("other")
			c.write(a, object)
			c.write(a, other)
			c.wantCurrent(a, object, true)
			before := c.files(object)
			test.edit(c, c.secret(secretKey(object)))
			c.wantCurrent(a, object, false)
			c.now = c.now.Add(tunnelInterval)
			if due := c.maintain(a); len(due) > 1 || (len(due) == 0 && name != "deleted") {
				t.Errorf("%v are due, want the Tunnel", due)
			}
			c.write(a, object)
			c.wantCurrent(a, object, true)
			c.wantAccepted(a, object)
			if kept := string(c.files(object)[envoy.CertificateFile]) == string(before[envoy.CertificateFile]); kept != test.keeps {
				t.Errorf("the certificate stays: %t, want %t", kept, test.keeps)
			}
		})
	}
}

// set returns an edit that sets one key.
func set(key, value string) func(*cluster, *corev1.Secret) {
	return func(c *cluster, s *corev1.Secret) {
		c.change(s, func(s *corev1.Secret) { s.Data[key] = []byte(value) })
	}
}

// copyFrom returns an edit that copies keys from another Tunnel's Secret.
func copyFrom(name string, keys ...string) func(*cluster, *corev1.Secret) {
	return func(c *cluster, s *corev1.Secret) {
		other := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		other.Spec.Gateway = v1alpha1.GatewayReference{Namespace: gatewayOfTunnel, Name: name}
		from := c.files(other)
		c.change(s, func(s *corev1.Secret) {
			for _, key := range keys {
				s.Data[key] = from[key]
			}
		})
	}
}

// A Secret that was deleted by hand is due at the next check.
func TestDeletedSecretIsDue(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	c.tunnel("without-envoy")
	c.write(a, object)
	if due := c.maintain(a); len(due) > 0 {
		t.Errorf("%v are due, want none", due)
	}
	c.delete(c.secret(secretKey(object)))
	c.now = c.now.Add(tunnelInterval)
	if due := c.maintain(a); len(due) != 1 || due[0] != object.Name {
		t.Errorf("%v are due, want %s", due, object.Name)
	}
}

// A deleted Tunnel's certificate does not fit its successor with the same name.
func TestNewTunnelGetsANewCertificate(t *testing.T) {
	c := newCluster(t)
	a, old := c.authority(), c.tunnel("shared")
	c.write(a, old)
	c.wantCurrent(a, old, true)
	c.delete(old)
	recreated := old.DeepCopy()
	recreated.UID, recreated.ResourceVersion = types.UID("recreated"), ""
	c.wantCurrent(a, recreated, false)
	c.write(a, recreated)
	c.wantCurrent(a, recreated, true)
	c.wantAccepted(a, recreated)
	if owner := metav1.GetControllerOf(c.secret(secretKey(recreated))); owner.UID != recreated.UID {
		t.Errorf("the owner is %s, want %s", owner.UID, recreated.UID)
	}
}

func TestSecretOfAnotherOwnerIsNotWritten(t *testing.T) {
	c := newCluster(t)
	a, object := c.authority(), c.tunnel("shared")
	key := secretKey(object)
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{"x": []byte("y")}}
	if err := c.kube.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	c.wantCurrent(a, object, false)
	err := a.Write(t.Context(), object)
	if failure, ok := errors.AsType[*tunnel.Failure](err); !ok || failure.Reason != conditions.ReasonObjectTaken || !strings.Contains(err.Error(), key.String()) {
		t.Errorf("the error is %v, want one with the reason %s", err, conditions.ReasonObjectTaken)
	}
	if got := c.files(object); !maps.EqualFunc(got, taken.Data, func(x, y []byte) bool { return string(x) == string(y) }) {
		t.Errorf("the Secret contains %d keys, want the unchanged one", len(got))
	}
	c.delete(taken)
	c.write(a, object)
	c.wantCurrent(a, object, true)
}

func TestExpiry(t *testing.T) {
	c := newCluster(t)
	a := c.authority()
	if got := a.Expiry(); got != (Expiry{}) {
		t.Errorf("the expiry is %+v before the first read, want none", got)
	}
	first, second := c.tunnel("first"), c.tunnel("second")
	c.write(a, first)
	c.now = c.now.Add(10 * day)
	c.write(a, second)
	c.maintain(a)
	want := Expiry{Authority: startTime.Add(authorityLifetime), Client: startTime.Add(lifetime)}
	if got := a.Expiry(); got != want {
		t.Errorf("the expiry is %+v, want %+v", got, want)
	}
	withoutFirst := Expiry{Authority: want.Authority, Client: startTime.Add(10*day + lifetime)}
	for name, test := range map[string]struct {
		change func(*v1alpha1.TunnelStatus)
		want   Expiry
	}{
		"is retained":             {func(s *v1alpha1.TunnelStatus) { s.Phase = v1alpha1.TunnelRetained }, withoutFirst},
		"has ingress rules again": {func(s *v1alpha1.TunnelStatus) { s.DataPlane = v1alpha1.DataPlaneIngressRules }, withoutFirst},
		"loses its Envoys": {func(s *v1alpha1.TunnelStatus) {
			s.DataPlane, s.DataPlaneChange = v1alpha1.DataPlaneIngressRules, &v1alpha1.DataPlaneChange{Phase: v1alpha1.DataPlaneRemovingEnvoy}
		}, want},
	} {
		first.Status = v1alpha1.TunnelStatus{DataPlane: v1alpha1.DataPlaneEnvoy}
		test.change(&first.Status)
		if err := c.kube.Update(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		c.now = c.now.Add(tunnelInterval)
		c.maintain(a)
		if got := a.Expiry(); got != test.want {
			t.Errorf("the expiry is %+v while the first Tunnel %s, want %+v", got, name, test.want)
		}
	}
	first.Status = v1alpha1.TunnelStatus{Phase: v1alpha1.TunnelRetained}
	if err := c.kube.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	c.delete(second)
	c.now = c.now.Add(tunnelInterval)
	c.maintain(a)
	want.Client = time.Time{}
	if got := a.Expiry(); got != want {
		t.Errorf("the expiry is %+v after the second Tunnel was deleted, want %+v", got, want)
	}
}

func TestSecretsOfDeletedTunnelsAreForgotten(t *testing.T) {
	c := newCluster(t)
	a := c.authority()
	one, two := c.tunnel("one"), c.tunnel("two")
	for _, tunnel := range []*v1alpha1.Tunnel{one, two} {
		if err := a.Write(t.Context(), tunnel); err != nil {
			t.Fatal(err)
		}
		if _, err := a.look(t.Context(), tunnel); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.issued) != 2 {
		t.Fatalf("the state of %d Secrets is known, want 2", len(a.issued))
	}
	if err := c.kube.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := a.checkTunnels(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found := a.issued[two.Name]; !found || len(a.issued) != 1 {
		t.Errorf("the state of %d Secrets is known after the deletion of one of two Tunnels, want 1", len(a.issued))
	}
}
