package adoption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

const (
	controllerName      = "tunnelgateway.dev/controller"
	controllerNamespace = "tunnel-gateway"
)

// cluster is an API server with the Gateways infra/one and infra/two, and the texts that the
// command shows.
type cluster struct {
	client.WithWatch
	mu    sync.Mutex
	shown []string
	// rounds are the numbers of entries in the annotation after each write.
	rounds []int
	// beforePatch is called before the Tunnel is annotated.
	beforePatch func(attempt int) error
	attempts    int
}

func newCluster() *cluster {
	var objects []client.Object
	for _, name := range []string{"one", "two"} {
		g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name}}
		o := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "infra." + name}}
		o.Spec.ControllerName, o.Spec.Gateway = controllerName, v1alpha1.GatewayReference{Namespace: "infra", Name: name}
		objects = append(objects, g, o)
	}
	base := fake.NewClientBuilder().WithScheme(manifest.Scheme()).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Tunnel{}, &gatewayv1.Gateway{}).Build()
	c := &cluster{}
	c.WithWatch = interceptor.NewClient(base, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			c.attempts++
			if c.beforePatch != nil {
				if err := c.beforePatch(c.attempts); err != nil {
					return err
				}
			}
			err := w.Patch(ctx, object, patch, opts...)
			if o, ok := object.(*v1alpha1.Tunnel); ok && err == nil {
				entries, _ := records.readRequests(o)
				c.rounds = append(c.rounds, len(entries))
			}
			return err
		},
	})
	return c
}

func (c *cluster) show(text string) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = append(c.shown, text)
	return func() {}
}

// tunnel returns the Tunnel of a Gateway.
func (c *cluster) tunnel(t *testing.T, name string) *v1alpha1.Tunnel {
	t.Helper()
	o := &v1alpha1.Tunnel{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: controllerNamespace, Name: "infra." + name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// entries returns the requests in the annotation.
func (c *cluster) entries(t *testing.T, name string) []v1alpha1.RecordAdoption {
	t.Helper()
	found, err := c.tunnel(t, name).RequestedAdoptions()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (c *cluster) setEntries(t *testing.T, name string, entries []v1alpha1.RecordAdoption) {
	t.Helper()
	text, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	o := c.tunnel(t, name)
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.AdoptRecordsAnnotation, string(text))
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// fillAnnotation adds as many requests as the annotation can have.
func (c *cluster) fillAnnotation(t *testing.T) {
	t.Helper()
	entries := make([]v1alpha1.RecordAdoption, v1alpha1.MaxAdoptions)
	for i := range entries {
		entries[i] = v1alpha1.RecordAdoption{Zone: "example.com", Name: fmt.Sprintf("other%d.example.com", i), Requested: metav1.Now()}
	}
	c.setEntries(t, "one", entries)
}

// process does what the controller does with all requests: it writes the results to the
// status, and removes the entries afterwards.
func (c *cluster) process(t *testing.T, name string, refuse func(v1alpha1.RecordAdoption) string) {
	t.Helper()
	o := c.tunnel(t, name)
	if o.Status.DNS == nil {
		o.Status.DNS = &v1alpha1.TunnelDNSStatus{}
	}
	entries := c.entries(t, name)
	for _, e := range entries {
		result := v1alpha1.RecordAdoptionResult{Zone: e.Zone, Name: e.Name, Requested: e.Requested, Result: v1alpha1.RecordAdopted, Message: "It was " + e.Content + "."}
		if refuse != nil && refuse(e) != "" {
			result.Result, result.Message = v1alpha1.AdoptionRefused, refuse(e)
		}
		all := o.Status.DNS.Adoptions
		all = slices.DeleteFunc(all, func(r v1alpha1.RecordAdoptionResult) bool { return r.Zone == e.Zone && r.Name == e.Name })
		o.Status.DNS.Adoptions = append(all, result)
	}
	if err := c.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c.setEntries(t, name, nil)
}

// candidates returns n candidates of a Gateway.
func candidates(name string, n int) []*Candidate {
	var all []*Candidate
	for i := range n {
		all = append(all, &Candidate{
			Gateway: "infra/" + name, Zone: "example.com", Name: fmt.Sprintf("%s%d.example.com", name, i), Action: Replace,
			Record: &Record{ID: "id", Type: "A", Content: "192.0.2.7"}, gateway: types.NamespacedName{Namespace: "infra", Name: name},
		})
	}
	return all
}

// adopt runs the command in virtual time, for at most a minute for each round, while the
// controller acts.
func (c *cluster) adopt(ctx context.Context, all []*Candidate, controller func()) error {
	done := make(chan error, 1)
	go func() {
		t := Target{Client: c, ControllerName: controllerName, ControllerNamespace: controllerNamespace, Timeout: time.Minute, Show: c.show}
		done <- t.Adopt(ctx, all)
	}()
	if controller != nil {
		controller()
	}
	err := <-done
	synctest.Wait() // the watches end with the command
	return err
}

// after waits for a while in virtual time.
func after(d time.Duration) { <-time.After(d) }

func TestAdoptWaitsForTheResultOfEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, all := newCluster(), candidates("one", 3)
		err := c.adopt(t.Context(), all, func() {
			after(2 * time.Second)
			got := c.entries(t, "one")
			want := v1alpha1.RecordAdoption{Zone: "example.com", Name: "one0.example.com", ID: "id", Type: "A", Content: "192.0.2.7", Requested: got[0].Requested}
			if len(got) != 3 || got[0] != want || got[0].Requested.Nanosecond() != 0 {
				t.Errorf("requested %v, want three entries such as %v in whole seconds", got, want)
			}
			c.process(t, "one", func(e v1alpha1.RecordAdoption) string {
				if e.Name == "one1.example.com" {
					return "The record has changed."
				}
				return ""
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		var results []string
		for _, c := range all {
			results = append(results, fmt.Sprintf("%s %s", c.Result, c.Message))
		}
		if want := []string{"Adopted It was 192.0.2.7.", "Refused The record has changed.", "Adopted It was 192.0.2.7."}; !slices.Equal(results, want) {
			t.Errorf("results = %q, want %q", results, want)
		}
		if got := Failed(all); got != 1 {
			t.Errorf("failed = %d, want 1", got)
		}
		if want := []string{"Gateway infra/one: the controller has processed 0 of 3 requests"}; !slices.Equal(c.shown, want) {
			t.Errorf("shown = %q, want %q", c.shown, want)
		}
	})
}

func TestAdoptWorksInRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		all := slices.Concat(candidates("two", 2), candidates("one", 1200))
		err := c.adopt(t.Context(), all, func() {
			for _, name := range []string{"two", "one", "one", "one"} {
				after(time.Second)
				c.process(t, name, nil)
			}
		})
		if err != nil || Failed(all) != 0 {
			t.Errorf("error = %v, %d failed", err, Failed(all))
		}
		if want := []int{2, 500, 500, 200}; !slices.Equal(c.rounds, want) {
			t.Errorf("rounds of %v, want %v", c.rounds, want)
		}
	})
}

func TestAdoptKeepsOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		old := metav1.NewTime(time.Now().UTC().Truncate(time.Second).Add(3 * time.Second)) // from a clock that is ahead
		entry := func(name string) v1alpha1.RecordAdoption {
			return v1alpha1.RecordAdoption{Zone: "example.com", Name: name, ID: "other", Type: "A", Content: "x", Requested: old}
		}
		c.setEntries(t, "one", []v1alpha1.RecordAdoption{entry("b.example.com"), entry("one0.example.com")})
		c.beforePatch = func(attempt int) error { // another client writes first
			if attempt == 1 {
				c.setEntries(t, "one", []v1alpha1.RecordAdoption{entry("b.example.com"), entry("c.example.com"), entry("one0.example.com")})
			}
			return nil
		}
		all := candidates("one", 1)
		err := c.adopt(t.Context(), all, func() {
			after(time.Second)
			var names []string
			for _, e := range c.entries(t, "one") {
				names = append(names, e.Name+" "+e.ID)
				if e.ID == "id" && !e.Requested.After(old.Time) {
					t.Errorf("requested at %s, not after the other request at %s", e.Requested, old)
				}
			}
			if want := []string{"b.example.com other", "c.example.com other", "one0.example.com id"}; !slices.Equal(names, want) {
				t.Errorf("entries %q, want %q", names, want)
			}
			c.process(t, "one", nil)
		})
		if err != nil || all[0].Result != v1alpha1.RecordAdopted || c.attempts != 2 {
			t.Errorf("error = %v, result %q, %d attempts", err, all[0].Result, c.attempts)
		}
	})
}

func TestAdoptIgnoresEarlierResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, all := newCluster(), candidates("one", 1)
		if err := c.adopt(t.Context(), all, func() {
			after(time.Second)
			c.process(t, "one", nil)
		}); err != nil {
			t.Fatal(err)
		}
		again := candidates("one", 1)
		if err := c.adopt(t.Context(), again, func() {
			after(8 * time.Second)
			if again[0].Result != "" {
				t.Errorf("took the earlier result %q", again[0].Message)
			}
			c.process(t, "one", func(v1alpha1.RecordAdoption) string { return "Changed." })
		}); err != nil || again[0].Message != "Changed." {
			t.Errorf("error = %v, message %q, want the second result", err, again[0].Message)
		}
	})
}

// dnsNotReady sets the Gateway's condition DNSReady.
func dnsNotReady(reason conditions.Reason, message string) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		g := &gatewayv1.Gateway{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "infra", Name: "one"}, g); err != nil {
			t.Fatal(err)
		}
		g.Status.Conditions = []metav1.Condition{conditions.TypeDNSReady.New(metav1.ConditionFalse, reason, message)}
		if err := c.Status().Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAdoptEndsWithoutAResult(t *testing.T) {
	const stays = ". The requests without a result stay in effect for an hour"
	const notProcessed = "Gateway infra/one: timed out after 1m0s: the controller has processed 0 of 1 requests: the controller has not processed the requests yet; check that it runs, and its log"
	for name, test := range map[string]struct {
		prepare    func(*testing.T, *cluster)
		controller func(*testing.T, *cluster)
		want       string
	}{
		"the controller does not run":        {nil, nil, notProcessed + ". The Gateway has no condition tunnelgateway.dev/DNSReady" + stays},
		"the controller is slow":             {dnsNotReady(conditions.ReasonPending, "Wait."), nil, notProcessed + stays},
		"the controller's token":             {dnsNotReady(conditions.ReasonForbidden, "a: no permission."), nil, "Gateway infra/one: timed out after 1m0s: the controller has processed 0 of 1 requests: the Gateway is not tunnelgateway.dev/DNSReady: a: no permission" + stays},
		"no space in the annotation":         {func(t *testing.T, c *cluster) { c.fillAnnotation(t) }, nil, "Gateway infra/one: timed out after 1m0s: other requests fill the annotation tunnelgateway.dev/adopt-records of the Tunnel"},
		"an annotation that is not valid":    {func(t *testing.T, c *cluster) { c.annotate(t, "{") }, nil, "Gateway infra/one: the annotation tunnelgateway.dev/adopt-records of Tunnel tunnel-gateway/infra.one is not valid: it is not a JSON list of records: unexpected end of JSON input; remove it"},
		"no Tunnel":                          {func(t *testing.T, c *cluster) { c.deleteTunnel(t) }, nil, `Gateway infra/one: read Tunnel tunnel-gateway/infra.one: tunnels.tunnelgateway.dev "infra.one" not found`},
		"the Tunnel is deleted":              {nil, func(t *testing.T, c *cluster) { c.deleteTunnel(t) }, `Gateway infra/one: read Tunnel tunnel-gateway/infra.one: tunnels.tunnelgateway.dev "infra.one" not found`},
		"a Tunnel of another controller":     {func(t *testing.T, c *cluster) { c.changeController(t) }, nil, "Gateway infra/one: the Gateway has no Tunnel: Tunnel tunnel-gateway/infra.one is for Gateway infra/one of controller example.com/other"},
		"the user may not patch the Tunnel":  {func(_ *testing.T, c *cluster) { c.forbidPatch() }, nil, `Gateway infra/one: annotate Tunnel tunnel-gateway/infra.one: tunnels.tunnelgateway.dev "infra.one" is forbidden: no; docs/commands.md contains the required role`},
		"another client removes the request": {nil, func(t *testing.T, c *cluster) { c.annotate(t, "") }, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, all := newCluster(), candidates("one", 1)
				if test.prepare != nil {
					test.prepare(t, c)
				}
				err := c.adopt(t.Context(), all, func() {
					if test.controller != nil {
						after(time.Second)
						test.controller(t, c)
					}
				})
				if got := fmt.Sprint(err); got != test.want {
					t.Errorf("error = %s\nwant    %s", got, test.want)
				}
				message := ""
				if err == nil {
					message = "The request is lost: another client changed the annotation " + v1alpha1.AdoptRecordsAnnotation + " of the Tunnel."
				}
				if all[0].Result != "" || all[0].Message != message {
					t.Errorf("result %q, message %q", all[0].Result, all[0].Message)
				}
			})
		})
	}
}

func (c *cluster) annotate(t *testing.T, text string) {
	t.Helper()
	o := c.tunnel(t, "one")
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.AdoptRecordsAnnotation, text)
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deleteTunnel(t *testing.T) {
	t.Helper()
	if err := c.Delete(t.Context(), c.tunnel(t, "one")); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) changeController(t *testing.T) {
	t.Helper()
	o := c.tunnel(t, "one")
	o.Spec.ControllerName = "example.com/other"
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) forbidPatch() {
	c.beforePatch = func(int) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "tunnels"}, "infra.one", errors.New("no"))
	}
}

func TestAdoptThatIsInterruptedSaysThatTheRequestsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, all := newCluster(), candidates("one", 1)
		ctx, cancel := context.WithCancel(t.Context())
		err := c.adopt(ctx, all, func() {
			after(time.Second)
			cancel()
		})
		if !errors.Is(err, ErrStillRequested) || len(c.entries(t, "one")) != 1 {
			t.Errorf("error = %v with %d requests", err, len(c.entries(t, "one")))
		}
	})
}

func TestRequestsFitTheAnnotation(t *testing.T) {
	all := candidates("one", 500)
	for _, c := range all {
		c.Record.Content = strings.Repeat("x", 1000)
	}
	o := &v1alpha1.Tunnel{}
	r, err := records.addRequests(o, items(all), time.Unix(0, 0))
	if size := len(o.Annotations[v1alpha1.AdoptRecordsAnnotation]); err != nil || size > maxAnnotation || size < maxAnnotation-2000 || len(r.entries) == 0 {
		t.Errorf("error = %v, %d entries with %d bytes", err, len(r.entries), size)
	}
}
