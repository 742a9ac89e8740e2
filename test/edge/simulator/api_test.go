package simulator_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudflare/cloudflare-go/v7"
	"github.com/cloudflare/cloudflare-go/v7/accounts"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"
	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func TestCreatedTunnelIsReported(t *testing.T) {
	var announced []string
	s, c := newAPI(t, simulator.Options{OnCreate: func(t simulator.Tunnel) { announced = append(announced, t.ID) }})
	created := c.create(t, "one")
	if created.Name != "one" || created.AccountTag != account || created.ConfigSrc != "cloudflare" ||
		created.Status != "inactive" || created.CreatedAt.IsZero() || !created.DeletedAt.IsZero() {
		t.Errorf("created %s", created.JSON.RawJSON())
	}
	_, err := c.new(t.Context(), "one")
	wantError(t, err, http.StatusConflict, 1013)
	if id, ok := s.TunnelID("one"); !ok || id != created.ID {
		t.Errorf("TunnelID = %q, %t, want %q", id, ok, created.ID)
	}
	if got, err := c.get(t.Context(), created.ID); err != nil || got.ID != created.ID {
		t.Errorf("get: %v, %v", got, err)
	}
	if diff := cmp.Diff([]string{created.ID}, announced); diff != "" {
		t.Errorf("OnCreate (-want +got):\n%s", diff)
	}
}

func TestDeletedTunnelKeepsItsRecordAndFreesItsName(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	ctx := t.Context()
	id := c.create(t, "one").ID
	if deleted, err := c.delete(ctx, id); err != nil || deleted.DeletedAt.IsZero() {
		t.Fatalf("delete: %v, %v", deleted, err)
	}
	if got, err := c.get(ctx, id); err != nil || got.DeletedAt.IsZero() {
		t.Errorf("get: %v, %v, want the tunnel with deleted_at", got, err)
	}
	if _, ok := s.TunnelID("one"); ok {
		t.Error("TunnelID finds a deleted tunnel")
	}
	_, err := c.delete(ctx, id)
	wantError(t, err, http.StatusNotFound, 1003)
	_, err = c.configuration(ctx, id)
	wantError(t, err, http.StatusNotFound, 1003)
	_, err = c.configure(ctx, id, `{}`)
	wantError(t, err, http.StatusNotFound, 1003)

	recreated := c.create(t, "one").ID
	tunnels := s.Tunnels()
	if recreated == id || len(tunnels) != 2 || !tunnels[0].Deleted || tunnels[1].Deleted || tunnels[1].ID != recreated {
		t.Errorf("after a second create: %+v", tunnels)
	}
}

func TestUnknownTunnelIsNotFound(t *testing.T) {
	_, c := newAPI(t, simulator.Options{})
	_, err := c.get(t.Context(), "unknown")
	wantError(t, err, http.StatusNotFound, 1003)
	_, err = c.configuration(t.Context(), "unknown")
	wantError(t, err, http.StatusNotFound, 1003)
}

func TestInvalidCreateIsRejected(t *testing.T) {
	_, c := newAPI(t, simulator.Options{})
	for _, body := range []string{
		`{`, `{"name":""}`, `{"name":"a","config_src":"other"}`, `{"name":"a","tunnel_secret":"c2hvcnQ="}`,
	} {
		_, err := c.ZeroTrust.Tunnels.Cloudflared.New(t.Context(),
			zero_trust.TunnelCloudflaredNewParams{AccountID: cloudflare.F(account)},
			option.WithRequestBody("application/json", []byte(body)))
		wantError(t, err, http.StatusBadRequest, 1001)
	}
}

func TestListAppliesFiltersAndPages(t *testing.T) {
	_, c := newAPI(t, simulator.Options{})
	for _, name := range []string{"a-1", "a-2", "b-1", "gone"} {
		c.create(t, name)
	}
	deleted := c.create(t, "gone-2").ID
	if _, err := c.delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		filter func(*zero_trust.TunnelCloudflaredListParams)
		want   []string
	}{
		"all": {func(*zero_trust.TunnelCloudflaredListParams) {},
			[]string{"a-1", "a-2", "b-1", "gone", "gone-2"}},
		"paged": {func(p *zero_trust.TunnelCloudflaredListParams) { p.PerPage = cloudflare.F(2.0) },
			[]string{"a-1", "a-2", "b-1", "gone", "gone-2"}},
		"from the second page": {func(p *zero_trust.TunnelCloudflaredListParams) {
			p.PerPage, p.Page = cloudflare.F(2.0), cloudflare.F(2.0)
		}, []string{"b-1", "gone", "gone-2"}},
		"not deleted": {func(p *zero_trust.TunnelCloudflaredListParams) { p.IsDeleted = cloudflare.F(false) },
			[]string{"a-1", "a-2", "b-1", "gone"}},
		"deleted": {func(p *zero_trust.TunnelCloudflaredListParams) { p.IsDeleted = cloudflare.F(true) },
			[]string{"gone-2"}},
		"name": {func(p *zero_trust.TunnelCloudflaredListParams) { p.Name = cloudflare.F("gone") },
			[]string{"gone"}},
		"uuid": {func(p *zero_trust.TunnelCloudflaredListParams) { p.UUID = cloudflare.F(deleted) },
			[]string{"gone-2"}},
		"prefix": {func(p *zero_trust.TunnelCloudflaredListParams) { p.IncludePrefix = cloudflare.F("a-") },
			[]string{"a-1", "a-2"}},
		"excluded prefix": {func(p *zero_trust.TunnelCloudflaredListParams) { p.ExcludePrefix = cloudflare.F("g") },
			[]string{"a-1", "a-2", "b-1"}},
		"status": {func(p *zero_trust.TunnelCloudflaredListParams) {
			p.Status = cloudflare.F(zero_trust.TunnelCloudflaredListParamsStatusHealthy)
		}, []string{}},
		"other account": {func(p *zero_trust.TunnelCloudflaredListParams) { p.AccountID = cloudflare.F("other") },
			[]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, c.names(t, test.filter)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
	for _, query := range []string{"page=0", "per_page=x", "per_page=1001", "existed_at=now"} {
		_, err := c.ZeroTrust.Tunnels.Cloudflared.List(t.Context(),
			zero_trust.TunnelCloudflaredListParams{AccountID: cloudflare.F(account)},
			option.WithQuery(strings.Split(query, "=")[0], strings.Split(query, "=")[1]))
		wantError(t, err, http.StatusBadRequest, 1001)
	}
}

func TestListReportsItsPageAndTotals(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	for _, name := range []string{"a", "b", "c"} {
		c.create(t, name)
	}
	request := httptest.NewRequest(http.MethodGet, "/client/v4/accounts/"+account+"/cfd_tunnel?per_page=2&page=2", nil)
	request.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	s.API().ServeHTTP(w, request)
	var body struct {
		ResultInfo map[string]int `json:"result_info"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"page": 2, "per_page": 2, "count": 1, "total_count": 3, "total_pages": 2}
	if diff := cmp.Diff(want, body.ResultInfo); diff != "" {
		t.Errorf("result_info (-want +got):\n%s", diff)
	}
}

func TestNewTunnelHasNoConfiguration(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	got, err := c.configuration(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 0 || got.JSON.Config.Raw() != "null" {
		t.Errorf("configuration %s, want version 0 and null", got.JSON.RawJSON())
	}
	if configuration, version := s.StoredConfiguration(id); configuration != nil || version != 0 {
		t.Errorf("StoredConfiguration = %s, %d, want nil and 0", configuration, version)
	}
}

func TestConfigurationIsStoredWithDefaults(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	stored, err := c.configure(t.Context(), id,
		`{"x":1,"ingress":[{"hostname":"a","path":"<","service":"http://a","originRequest":{"y":2}},{"service":"http_status:404"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Version != 1 || stored.TunnelID != id || stored.Source != "cloudflare" {
		t.Errorf("put: %s", stored.JSON.RawJSON())
	}
	got, err := c.configuration(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 1 || len(got.Config.Ingress) != 2 || got.Config.Ingress[0].Path != "<" {
		t.Errorf("get: %s", got.JSON.RawJSON())
	}
	configuration, version := s.StoredConfiguration(id)
	wantJSON(t, configuration, `{"x":1,"originRequest":{},"warp-routing":{"enabled":false},"ingress":[
		{"hostname":"a","path":"<","service":"http://a","originRequest":{"y":2}},
		{"service":"http_status:404","originRequest":{}}]}`)
	if version != 1 {
		t.Errorf("version %d, want 1", version)
	}
}

func TestExternalChangeIsNotARequest(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	s.SetConfiguration(id, json.RawMessage(`{"warp-routing":{"enabled":true}}`))
	got, err := c.configuration(t.Context(), id)
	if err != nil || got.Version != 1 {
		t.Fatalf("configuration %v, %v, want version 1", got, err)
	}
	wantJSON(t, json.RawMessage(got.JSON.Config.Raw()), `{"warp-routing":{"enabled":true},"originRequest":{}}`)
	if s.Count("PUT", "") != 0 {
		t.Error("an external change was counted as a request")
	}
}

func TestInvalidConfigurationIsRejectedOrIgnored(t *testing.T) {
	const valid, invalid = `{"ingress":[{"service":"http_status:201"}]}`, `{"ingress":[{"service":"http://a/"}]}`
	t.Run("the API rejects it", func(t *testing.T) {
		s, c := newAPI(t, simulator.Options{})
		id := c.create(t, "one").ID
		if _, err := c.configure(t.Context(), id, valid); err != nil {
			t.Fatal(err)
		}
		for _, configuration := range []string{invalid, `[]`, `null`} {
			_, err := c.configure(t.Context(), id, configuration)
			wantError(t, err, http.StatusBadRequest, 1056)
		}
		if _, version := s.StoredConfiguration(id); version != 1 {
			t.Errorf("version %d, want 1", version)
		}
	})
	t.Run("AcceptInvalid stores it and the connector ignores it", func(t *testing.T) {
		s, id, address := newTunnel(t, simulator.Options{AcceptInvalid: true})
		api := httptest.NewServer(s.API())
		defer api.Close()
		c := newClient(api.URL)
		for _, configuration := range []string{valid, invalid} {
			if _, err := c.configure(t.Context(), id, configuration); err != nil {
				t.Fatal(err)
			}
		}
		configuration, version := s.StoredConfiguration(id)
		if version != 2 || !strings.Contains(string(configuration), "http://a/") {
			t.Errorf("stored %s, version %d, want the invalid configuration and version 2", configuration, version)
		}
		if status, _ := get(t, address, "a", "/"); status != 201 {
			t.Errorf("the connector returned %d, want 201 from its previous configuration", status)
		}
		s.Connect(id, 1)
		if got := c.connectors(t, id); got[0].ConfigVersion != 1 {
			t.Errorf("config_version %d, want 1", got[0].ConfigVersion)
		}
	})
}

func TestLocallyManagedTunnelIgnoresTheStoredConfiguration(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	tunnel, err := c.ZeroTrust.Tunnels.Cloudflared.New(t.Context(), zero_trust.TunnelCloudflaredNewParams{
		AccountID: cloudflare.F(account), Name: cloudflare.F("local"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Tunnels()[0].ConfigSrc; got != "local" {
		t.Errorf("config_src = %q", got)
	}
	for _, step := range []struct {
		local bool
		want  int
	}{{true, http.StatusServiceUnavailable}, {false, http.StatusCreated}, {true, http.StatusServiceUnavailable}} {
		s.SetLocal(tunnel.ID, step.local)
		if _, err := c.configure(t.Context(), tunnel.ID, `{"ingress":[{"service":"http_status:201"}]}`); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		s.Tunnel(tunnel.ID).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != step.want {
			t.Errorf("local %t: status %d, want %d", step.local, w.Code, step.want)
		}
	}
}

func TestTunnelTokenContainsTheCredentials(t *testing.T) {
	_, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	content, err := base64.StdEncoding.DecodeString(c.tunnelToken(t, id))
	if err != nil {
		t.Fatal(err)
	}
	var credentials struct {
		A, T string
		S    []byte
	}
	if err := json.Unmarshal(content, &credentials); err != nil {
		t.Fatal(err)
	}
	if credentials.A != account || credentials.T != id || len(credentials.S) != 32 {
		t.Errorf("credentials of account %q, tunnel %q, %d bytes", credentials.A, credentials.T, len(credentials.S))
	}
}

func TestRotatedTokenKeepsConnectorsConnected(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	s.Connect(id, 2)
	before := c.connectors(t, id)
	old, unchanged := c.tunnelToken(t, id), c.tunnelToken(t, id)
	s.RotateToken(id)
	rotated := c.tunnelToken(t, id)
	if old != unchanged || rotated == old {
		t.Errorf("tokens before the rotation: %q and %q, after: %q", old, unchanged, rotated)
	}
	if after := c.connectors(t, id); len(after) != 2 || after[0].ID != before[0].ID || after[1].ID != before[1].ID {
		t.Errorf("connectors %v, want %v", after, before)
	}
}

func TestEditChangesNameAndSecret(t *testing.T) {
	_, c := newAPI(t, simulator.Options{})
	ctx := t.Context()
	c.create(t, "two")
	id := c.create(t, "one").ID
	token := c.tunnelToken(t, id)
	wantError(t, c.tryEdit(ctx, id, `{"name":"two"}`), http.StatusConflict, 1013)
	wantError(t, c.tryEdit(ctx, id, `{"name":"three","tunnel_secret":"c2hvcnQ="}`), http.StatusBadRequest, 1001)
	wantError(t, c.tryEdit(ctx, id, `{`), http.StatusBadRequest, 1001)
	wantError(t, c.tryEdit(ctx, "unknown", `{}`), http.StatusNotFound, 1003)
	c.edit(t, id, `{"name":"one"}`)
	if got, err := c.get(ctx, id); err != nil || got.Name != "one" || c.tunnelToken(t, id) != token {
		t.Errorf("rejected edits changed the tunnel: %+v, %v", got, err)
	}

	secret := newSecret()
	c.edit(t, id, `{"name":"three","tunnel_secret":"`+secret+`"}`)
	content, err := base64.StdEncoding.DecodeString(c.tunnelToken(t, id))
	if err != nil || !strings.Contains(string(content), secret) {
		t.Errorf("the token does not contain the new secret, error %v", err)
	}
	if got, err := c.get(ctx, id); err != nil || got.Name != "three" {
		t.Errorf("tunnel %+v, %v, want the name three", got, err)
	}
	c.create(t, "one")
}

func TestTunnelWithRoutesCannotBeDeleted(t *testing.T) {
	s, c := newAPI(t, simulator.Options{})
	id := c.create(t, "one").ID
	s.SetRoutes(id, true)
	_, err := c.delete(t.Context(), id)
	wantError(t, err, http.StatusBadRequest, 1023)
	s.SetRoutes(id, false)
	if _, err := c.delete(t.Context(), id); err != nil {
		t.Errorf("delete without routes: %v", err)
	}
}

func TestWrongTokenOrAccountIsRejected(t *testing.T) {
	s, c := newAPI(t, simulator.Options{AccountID: account, Token: token})
	ctx := t.Context()
	verify := func() error {
		user, err := c.User.Tokens.Verify(ctx)
		if err == nil && user.Status != "active" {
			t.Errorf("token status %q", user.Status)
		}
		_, accountErr := c.Accounts.Tokens.Verify(ctx,
			accounts.TokenVerifyParams{AccountID: cloudflare.F(account)})
		if (err == nil) != (accountErr == nil) {
			t.Errorf("user token: %v, account token: %v", err, accountErr)
		}
		return err
	}
	if err := verify(); err != nil {
		t.Errorf("verify: %v", err)
	}
	_, err := c.ZeroTrust.Tunnels.Cloudflared.List(ctx,
		zero_trust.TunnelCloudflaredListParams{AccountID: cloudflare.F("other")})
	wantError(t, err, http.StatusForbidden, 10000)

	s.SetToken("another")
	wantError(t, verify(), http.StatusUnauthorized, 1000)
	_, err = c.get(ctx, "any")
	wantError(t, err, http.StatusUnauthorized, 10000)
	if err := c.Get(ctx, "nowhere", nil, nil); err == nil {
		t.Error("an unknown path did not fail")
	} else {
		wantError(t, err, http.StatusNotFound, 7003)
	}
}
