package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

const (
	tunnelTarget = "6ff42ae2-765d-4adf-8112-31c55c1551ef.cfargotunnel.com"
	otherTarget  = "00000000-765d-4adf-8112-31c55c1551ef.cfargotunnel.com"
)

// adoptBed is a cluster with the objects in testdata/adopt.in.yaml and a simulator with
// their zones.
type adoptBed struct {
	client.WithWatch
	*simulator.Server
	database *zones.Database
	zone     string // the ID of example.com
	// token can only read. It is unique, so that each test has its own request budget.
	token, url string
}

func newAdoptBed(t *testing.T) *adoptBed {
	t.Helper()
	text, err := os.ReadFile("testdata/adopt.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read([]string{"-"}, manifest.Options{Stdin: bytes.NewReader(text), Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	b := &adoptBed{token: rand.Text(), database: zones.New(zones.Options{})}
	b.WithWatch = fake.NewClientBuilder().WithScheme(manifest.Scheme()).WithObjects(set.Objects...).WithStatusSubresource(&v1alpha1.Tunnel{}).Build()
	b.Server = simulator.New(simulator.Options{Token: "another", Zones: b.database})
	b.Restrict(b.token, simulator.Grant{Permissions: []simulator.Permission{simulator.ZoneRead, simulator.DNSRead}})
	server := httptest.NewServer(b.API())
	t.Cleanup(server.Close)
	b.url = server.URL + "/client/v4"
	b.zone = b.database.Add(zones.Zone{Name: "example.com", Account: "main"})
	second := b.database.Add(zones.Zone{Name: "example.net", Account: "main"})
	b.create(t, b.zone, "hand.example.com", "CNAME", tunnelTarget)
	b.create(t, b.zone, "chain.example.com", "CNAME", "hand.example.com")
	b.create(t, b.zone, "balancer.example.com", "A", "192.0.2.7")
	b.create(t, b.zone, "dual.example.com", "A", "192.0.2.7")
	b.create(t, b.zone, "dual.example.com", "AAAA", "2001:db8::7")
	b.create(t, b.zone, "both.example.com", "CNAME", otherTarget)
	b.create(t, b.zone, "unrelated.example.com", "CNAME", tunnelTarget)
	b.create(t, second, "www.example.net", "CNAME", tunnelTarget)
	for _, variable := range []string{"CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN_SECRET", "NO_COLOR"} {
		t.Setenv(variable, "")
	}
	t.Setenv("CLOUDFLARE_API_TOKEN", b.token)
	t.Setenv("CLOUDFLARE_BASE_URL", b.url)
	return b
}

func (b *adoptBed) create(t *testing.T, zone, name, kind, content string) {
	t.Helper()
	if _, err := b.database.Create(zone, zones.Fields{Name: &name, Type: &kind, Content: &content, Proxied: new(true), TTL: new(1)}); err != nil {
		t.Fatal(err)
	}
}

// result is what a command printed.
type result struct {
	stdout, stderr string
	err            error
}

// run runs dns adopt in the cluster.
func (b *adoptBed) run(ctx context.Context, stdin string, arguments ...string) result {
	var o adoptOptions
	cmd := &cobra.Command{Use: "adopt", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, names []string) error {
		if err := o.check(cmd, names); err != nil {
			return err
		}
		return o.executeOn(cmd, b.WithWatch, names)
	}}
	o.addFlags(cmd.Flags())
	var stdout, stderr bytes.Buffer
	cmd.SetArgs(arguments)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err := cmd.ExecuteContext(ctx)
	return result{stdout.String(), stderr.String(), err}
}

// requests returns the requests in the annotation of the Gateway's Tunnel.
func (b *adoptBed) requests(t *testing.T, gateway string) []v1alpha1.RecordAdoption {
	t.Helper()
	text := b.tunnel(t, gateway).Annotations[v1alpha1.AdoptRecordsAnnotation]
	if text == "" {
		return nil
	}
	var entries []v1alpha1.RecordAdoption
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		t.Fatal(err)
	}
	return entries
}

func (b *adoptBed) tunnel(t *testing.T, gateway string) *v1alpha1.Tunnel {
	t.Helper()
	o := &v1alpha1.Tunnel{}
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: "tunnel-gateway", Name: "platform." + gateway}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// control plays the controller for the Gateway shared: it refuses the requests for
// www.example.net, and writes the results of all into the status.
func (b *adoptBed) control(t *testing.T, entries []v1alpha1.RecordAdoption) {
	t.Helper()
	o := b.tunnel(t, "shared")
	o.Status.DNS = &v1alpha1.TunnelDNSStatus{}
	for _, e := range entries {
		r := v1alpha1.RecordAdoptionResult{Zone: e.Zone, Name: e.Name, Requested: e.Requested, Result: v1alpha1.RecordAdopted, Message: "It was " + e.Type + " " + e.Content + "."}
		if e.Zone == "example.net" {
			r.Result, r.Message = v1alpha1.AdoptionRefused, "The record has changed."
		}
		o.Status.DNS.Adoptions = append(o.Status.DNS.Adoptions, r)
	}
	if err := b.Status().Update(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// withController runs dns adopt while the controller processes its requests.
func (b *adoptBed) withController(t *testing.T, arguments ...string) result {
	t.Helper()
	done := make(chan result, 1)
	go func() { done <- b.run(t.Context(), "", arguments...) }()
	for {
		select {
		case r := <-done:
			return r
		case <-time.After(10 * time.Millisecond):
		}
		if entries := b.requests(t, "shared"); len(entries) > 0 && b.tunnel(t, "shared").Status.DNS == nil {
			b.control(t, entries)
		}
	}
}

func (r result) want(t *testing.T, stdout, message string) {
	t.Helper()
	got := ""
	if r.err != nil {
		got = r.err.Error()
	}
	if got != message {
		t.Errorf("error = %q, want %q", got, message)
	}
	if diff := cmp.Diff(strings.TrimPrefix(stdout, "\n"), r.stdout); diff != "" {
		t.Errorf("standard output (-want +got):\n%s", diff)
	}
}

// wantNoRequest checks that the command asked for nothing and changed nothing.
func (b *adoptBed) wantNoRequest(t *testing.T) {
	t.Helper()
	for _, gateway := range []string{"shared", "other"} {
		if entries := b.requests(t, gateway); len(entries) > 0 {
			t.Errorf("requested %v", entries)
		}
	}
	for _, r := range b.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("sent %s %s", r.Method, r.Path)
		}
	}
}

const (
	adoptHeader = "NAME                  TYPE   CONTENT                                                PROXIED  LEADS      ACTION   GATEWAY\n"
	handRow     = "hand.example.com      CNAME  6ff42ae2-765d-4adf-8112-31c55c1551ef.cfargotunnel.com  yes      here       mark     platform/shared\n"
	balancerRow = "balancer.example.com  A      192.0.2.7                                              yes      elsewhere  replace  platform/shared\n"
)

func TestAdoptShowsRecordsBeforeItAsks(t *testing.T) {
	b := newAdoptBed(t)
	b.run(t.Context(), "", "hand.example.com", "balancer.example.com", "--dry-run").want(t, adoptHeader+handRow+balancerRow, "")
	b.run(t.Context(), "yes\n", "hand.example.com", "balancer.example.com").want(t, adoptHeader+handRow+balancerRow,
		"the controller would replace records that lead elsewhere (balancer.example.com), and the command cannot ask: standard input is not a terminal; set --yes to replace them. The command has requested nothing")
	b.wantNoRequest(t)
}

func TestAdoptPrintsTheResults(t *testing.T) {
	b := newAdoptBed(t)
	got := b.withController(t, "hand.example.com", "balancer.example.com", "--yes")
	got.want(t, adoptHeader+handRow+balancerRow+`NAME                  ZONE         RESULT   GATEWAY
hand.example.com      example.com  Adopted  platform/shared
balancer.example.com  example.com  Adopted  platform/shared
hand.example.com: It was CNAME 6ff42ae2-765d-4adf-8112-31c55c1551ef.cfargotunnel.com.
balancer.example.com: It was A 192.0.2.7.
`, "")
	records := b.database.Records(b.zone)
	hand := records[slices.IndexFunc(records, func(r zones.Record) bool { return r.Name == "hand.example.com" })]
	if e := b.requests(t, "shared")[0]; e.ID != hand.ID || e.Type != "CNAME" || e.Content != tunnelTarget || e.Zone != "example.com" || e.Name != hand.Name {
		t.Errorf("requested %v for %v", e, hand)
	}
}

func TestAdoptFailsIfTheControllerRefuses(t *testing.T) {
	b := newAdoptBed(t)
	got := b.withController(t, "www.example.net", "hand.example.com", "-o", "json")
	if got.err == nil || got.err.Error() != "the controller has not adopted 1 of 2 records" {
		t.Errorf("error = %v", got.err)
	}
	var output struct{ Records []map[string]any }
	if err := json.Unmarshal([]byte(got.stdout), &output); err != nil || len(output.Records) != 2 {
		t.Fatalf("error = %v in %s", err, got.stdout)
	}
	delete(output.Records[0]["record"].(map[string]any), "id")
	want := map[string]any{
		"gateway": "platform/shared", "zone": "example.net", "name": "www.example.net", "leadsHere": true, "action": "mark",
		"record": map[string]any{"type": "CNAME", "content": tunnelTarget, "proxied": true},
		"result": "Refused", "message": "The record has changed.",
	}
	if diff := cmp.Diff(want, output.Records[0]); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestAdoptAllThatLeadHere(t *testing.T) {
	b := newAdoptBed(t)
	got := b.withController(t, "--leading-here", "--gateway", "platform/shared", "-o", "json")
	var names []string
	for _, e := range b.requests(t, "shared") {
		names = append(names, e.Name)
	}
	if want := []string{"chain.example.com", "hand.example.com", "www.example.net"}; !slices.Equal(names, want) || got.err == nil || got.err.Error() != "the controller has not adopted 1 of 3 records" {
		t.Errorf("requested %q, error %v; want %q", names, got.err, want)
	}

	b.run(t.Context(), "", "--leading-here", "--gateway", "platform/other", "-o", "json", "--dry-run").want(t, `
{
  "records": [
    {
      "gateway": "platform/other",
      "zone": "example.com",
      "name": "both.example.com",
      "record": {
        "id": "`+b.id(t, "both.example.com")+`",
        "type": "CNAME",
        "content": "`+otherTarget+`",
        "proxied": true
      },
      "leadsHere": true,
      "action": "mark"
    }
  ]
}
`, "")
	if err := b.database.Delete(b.zone, b.id(t, "both.example.com")); err != nil {
		t.Fatal(err)
	}
	b.run(t.Context(), "", "--leading-here", "--gateway", "platform/other").want(t, "No record without a valid mark leads to the Gateway.\n", "")
	b.run(t.Context(), "", "--leading-here", "--gateway", "platform/other", "-o", "json").want(t, "{\n  \"records\": []\n}\n", "")
}

// id returns the ID of the record with the name.
func (b *adoptBed) id(t *testing.T, name string) string {
	t.Helper()
	for _, r := range b.database.Records(b.zone) {
		if r.Name == name {
			return r.ID
		}
	}
	t.Fatalf("no record %s", name)
	return ""
}

func TestAdoptRequestsNothingIfOneRecordCannotBeAdopted(t *testing.T) {
	b := newAdoptBed(t)
	b.run(t.Context(), "", "hand.example.com", "dual.example.com", "none.example.com", "--yes").want(t, `
NAME              TYPE   CONTENT                                                PROXIED  LEADS  ACTION  GATEWAY
hand.example.com  CNAME  6ff42ae2-765d-4adf-8112-31c55c1551ef.cfargotunnel.com  yes      here   mark    platform/shared
dual.example.com  -      -                                                      -        -      -       platform/shared
none.example.com  -      -                                                      -        -      -       platform/shared
dual.example.com: 2 records have this name (A, AAAA), but a CNAME record must be the only one. Delete all but one of them, and adopt it; or delete all of them, and the controller creates the record.
none.example.com: no A, AAAA or CNAME record has this name, so there is nothing to adopt: the controller creates the record.
`, "2 of 3 records cannot be adopted; the command has requested nothing")
	b.wantNoRequest(t)
}

func TestAdoptExplainsErrors(t *testing.T) {
	b := newAdoptBed(t)
	noDNS := rand.Text()
	b.Restrict(noDNS, simulator.Grant{Permissions: []simulator.Permission{simulator.ZoneRead}})
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"no names":               {nil, `adopt requires the names of records, or --leading-here; see "adopt --help"`},
		"names and all":          {[]string{"hand.example.com", "--leading-here"}, `--leading-here must not be set together with names; see "adopt --help"`},
		"an empty name":          {[]string{""}, "NAME must not be empty"},
		"a dry run that waits":   {[]string{"hand.example.com", "--dry-run", "--timeout", "1m"}, "--timeout has no effect with --dry-run"},
		"no timeout":             {[]string{"hand.example.com", "--timeout", "0s"}, "--timeout must be greater than 0, got 0s"},
		"an unknown format":      {[]string{"hand.example.com", "-o", "yaml"}, `--output must be one of table, json, got "yaml"`},
		"an invalid Gateway":     {[]string{"hand.example.com", "--gateway", "shared"}, `--gateway must be of the form namespace/name, got "shared"`},
		"a Gateway that is gone": {[]string{"hand.example.com", "--gateway", "platform/gone"}, "Gateway platform/gone: not found; Gateways of this controller: platform/other, platform/shared"},
		"a name of two Gateways": {[]string{"both.example.com"}, "both.example.com: several Gateways use the hostname: platform/other, platform/shared; select one with --gateway"},
		"a name that is not used": {[]string{"unrelated.example.com", "hnad.example.com"}, "unrelated.example.com: no Gateway uses the hostname in a listener and a route\n" +
			"hnad.example.com: no Gateway uses the hostname in a listener and a route; did you mean hand.example.com?"},
		"a token without a permission": {[]string{"hand.example.com", "--cloudflare-api-token", noDNS}, "zone example.com: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.run(t.Context(), "", test.arguments...)
			if got.err == nil || got.err.Error() != test.want && (name != "a token without a permission" || !strings.HasPrefix(got.err.Error(), test.want) ||
				!strings.HasSuffix(got.err.Error(), "; the API token needs the permissions Zone: Read and DNS: Read")) {
				t.Errorf("error = %v, want %s", got.err, test.want)
			}
			if got.err != nil && strings.Contains(got.err.Error(), noDNS) {
				t.Error("the error contains the token")
			}
		})
	}
	b.wantNoRequest(t)
}

func TestAdoptRequiresATokenOfTheUser(t *testing.T) {
	b := newAdoptBed(t)
	t.Setenv("CLOUDFLARE_API_TOKEN", "")
	got := b.run(t.Context(), "", "hand.example.com")
	if want := "no API token: set CLOUDFLARE_API_TOKEN to your own token with the permissions Zone: Read and DNS: Read for the zones; the controller's token is not used"; got.err == nil || got.err.Error() != want {
		t.Errorf("error = %v, want %s", got.err, want)
	}
	if n := len(b.Requests()); n > 0 {
		t.Errorf("sent %d requests without a token", n)
	}
}

func TestAdoptNamesTheSettingThatPreventsIt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.DNS)
		want   string
	}{
		"Observe":  {func(d *v1alpha1.DNS) { d.Mode = new(v1alpha1.DNSObserve) }, "dns.mode of GatewayClass cloudflare-tunnel is Observe, which changes no record; set it to Manage"},
		"Off":      {func(d *v1alpha1.DNS) { d.Mode = nil }, "dns.mode of GatewayClass cloudflare-tunnel is Off; set it to Manage"},
		"excluded": {func(d *v1alpha1.DNS) { d.Exclude = []string{"hand.example.com"} }, "dns.exclude of GatewayClass cloudflare-tunnel excludes the hostname"},
		"no zone":  {func(d *v1alpha1.DNS) { d.Zones = d.Zones[1:] }, "the hostname is in none of the zones in dns.zones of GatewayClass cloudflare-tunnel lists"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newAdoptBed(t)
			c := &v1alpha1.TunnelConfiguration{}
			if err := b.Get(t.Context(), types.NamespacedName{Namespace: "tunnel-gateway", Name: "defaults"}, c); err != nil {
				t.Fatal(err)
			}
			test.change(c.Spec.DNS)
			if err := b.Update(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			want := "hand.example.com: Gateway platform/shared: " + test.want
			if got := b.run(t.Context(), "", "hand.example.com"); got.err == nil || got.err.Error() != want {
				t.Errorf("error = %v, want %s", got.err, want)
			}
			b.wantNoRequest(t)
		})
	}
}

func TestAdoptChangesNothingForAPausedGateway(t *testing.T) {
	b := newAdoptBed(t)
	g := &gatewayv1.Gateway{}
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: "platform", Name: "shared"}, g); err != nil {
		t.Fatal(err)
	}
	g.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
	if err := b.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	const want = "hand.example.com: Gateway platform/shared: it is paused, or its Tunnel is Blocked, so the controller changes no record for it"
	if got := b.run(t.Context(), "", "hand.example.com"); got.err == nil || got.err.Error() != want {
		t.Errorf("error = %v, want %s", got.err, want)
	}
	b.wantNoRequest(t)
}

func TestAdoptEscapesTheTextOfRecords(t *testing.T) {
	b := newAdoptBed(t)
	if _, err := b.database.Patch(b.zone, b.id(t, "hand.example.com"), zones.Fields{Comment: new("a\x1b[2Jb\u202e")}); err != nil {
		t.Fatal(err)
	}
	got := b.run(t.Context(), "", "hand.example.com", "--dry-run")
	if !strings.HasSuffix(got.stdout, "hand.example.com: its comment is \"a\\x1b[2Jb\\u202e\".\n") {
		t.Errorf("error = %v, printed %q", got.err, got.stdout)
	}
}

func TestAskReplacesOnlyAfterAYes(t *testing.T) {
	for answer, want := range map[string]error{"y\n": nil, "YES\n": nil, "yes": nil, "\n": errNotConfirmed, "n\n": errNotConfirmed, "": errNotConfirmed, "yes please\n": errNotConfirmed} {
		var out bytes.Buffer
		if err := ask(t.Context(), strings.NewReader(answer), &out, replacing(nil).question); err != want { //nolint:errorlint // the error is not wrapped
			t.Errorf("%q: error = %v, want %v", answer, err, want)
		}
		if out.String() != "Replace the record that leads elsewhere? Requests then go to the Gateway. [y/N] " {
			t.Errorf("asked %q", out.String())
		}
	}
}

func TestAskEndsWithTheContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ask(ctx, r, &bytes.Buffer{}, ""); err != context.Canceled { //nolint:errorlint // the error is not wrapped
		t.Errorf("error = %v, want the context's", err)
	}
}
