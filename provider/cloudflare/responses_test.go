package cloudflare

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func jsonResponse(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(body)),
	}
}

func providerReturning(t *testing.T, body string) *Provider {
	t.Helper()
	return newProvider(t, Options{
		AccountID: account, APIToken: "token",
		Transport: transportFunc(func(*http.Request) (*http.Response, error) {
			return jsonResponse(http.StatusOK, body), nil
		}),
	})
}

const testID provider.TunnelID = "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415"

func TestStatusDeterminesTheError(t *testing.T) {
	tests := map[string]struct {
		fault simulator.Fault
		want  error
	}{
		"unauthorized": {simulator.Fault{Status: http.StatusUnauthorized}, provider.ErrUnauthorized},
		"forbidden":    {simulator.Fault{Status: http.StatusForbidden}, provider.ErrUnauthorized},
		"not found":    {simulator.Fault{Status: http.StatusNotFound}, provider.ErrNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			withEdge(t, func(t *testing.T, e *edge) {
				e.Inject(test.fault)
				_, _, err := e.Configuration(t.Context(), testID)
				if !errors.Is(err, test.want) || provider.IsTransient(err) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				for _, part := range []string{string(testID), "/configurations", strconv.Itoa(test.fault.Status)} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %q does not contain %q", err, part)
					}
				}
				if got := len(e.Requests()); got != 1 {
					t.Errorf("%d requests, want 1", got)
				}
			})
		})
	}
}

func TestNotFoundRequiresAnAPIResponse(t *testing.T) {
	// A 404 from a proxy, or because of a wrong base URL, does not mean that the tunnel
	// is gone.
	t.Run("not JSON", func(t *testing.T) {
		withEdge(t, func(t *testing.T, e *edge) {
			id := e.newTunnel(t)
			e.Inject(simulator.Fault{Status: http.StatusNotFound, Body: "<html>"})
			wantUnavailable(t, e.DeleteTunnel(t.Context(), id), 0)
		})
	})
	t.Run("no such path", func(t *testing.T) {
		withEdge(t, func(t *testing.T, e *edge) {
			id := e.newTunnel(t)
			misconfigured := newProvider(t, Options{
				AccountID: account, APIToken: e.token, BaseURL: baseURL + "/more", Transport: e.transport,
			})
			err := misconfigured.DeleteTunnel(t.Context(), id)
			if err == nil || errors.Is(err, provider.ErrNotFound) || provider.IsTransient(err) {
				t.Errorf("got %v, want a permanent error other than ErrNotFound", err)
			}
		})
	})
}

func TestNotFoundIsConfirmedByTheList(t *testing.T) {
	// A tunnel is not found only if the list of tunnels does not contain it either.
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Method: http.MethodGet, Path: "/accounts/*/cfd_tunnel/*", Status: http.StatusNotFound})
		_, err := e.Provider.Tunnel(t.Context(), id)
		wantUnavailable(t, err, 0)
		if _, err := e.Provider.Tunnel(t.Context(), "00000000-0000-4000-8000-00000000dead"); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

func TestConfigurationRejectedByTheAPIIsInvalid(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		e.Inject(simulator.Fault{Method: http.MethodPut, Status: http.StatusBadRequest})
		_, err := e.Configure(t.Context(), id, configuration("a"))
		invalid, ok := errors.AsType[*provider.InvalidError](err)
		if !ok || invalid.Rule != -1 || !strings.Contains(invalid.Message, "code 400") {
			t.Errorf("got %v, want an InvalidError with the message of the API", err)
		}
	})
}

func TestInvalidConfigurationIsNotSent(t *testing.T) {
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		invalid := configuration("a:80")
		if _, err := e.Configure(t.Context(), id, invalid); err == nil {
			t.Error("got no error, want an InvalidError")
		}
		if got := len(e.Requests()); got != 0 {
			t.Errorf("%d requests, want none", got)
		}
	})
}

func TestUnexpectedResponsesAreUnavailableErrors(t *testing.T) {
	for _, body := range []string{`null`, `{}`, `{"success":false,"result":null}`, `[]`, `{`, ``} {
		t.Run(body, func(t *testing.T) {
			p := providerReturning(t, body)
			_, _, readErr := p.Configuration(t.Context(), testID)
			wantUnavailable(t, readErr, 0)
			_, writeErr := p.Configure(t.Context(), testID, configuration("a"))
			wantUnavailable(t, writeErr, 0)
			_, createErr := p.CreateTunnel(t.Context(), name)
			wantUnavailable(t, createErr, 0)
			_, findErr := p.FindTunnel(t.Context(), name)
			wantUnavailable(t, findErr, 0)
			_, getErr := p.Tunnel(t.Context(), testID)
			wantUnavailable(t, getErr, 0)
			_, listErr := p.Tunnels(t.Context())
			wantUnavailable(t, listErr, 0)
			_, tokenErr := p.Token(t.Context(), testID)
			wantUnavailable(t, tokenErr, 0)
			wantUnavailable(t, p.RotateToken(t.Context(), testID), 0)
			wantUnavailable(t, p.DeleteTunnel(t.Context(), testID), 0)
			_, connectionsErr := p.Connections(t.Context(), testID)
			wantUnavailable(t, connectionsErr, 0)
		})
	}
}

// A connector with the token of another tunnel would serve that tunnel.
func TestTokenOfAnotherTunnelIsUnavailable(t *testing.T) {
	for name, credentials := range map[string]string{
		"another account": fmt.Sprintf(`{"a":"other","t":%q,"s":"c2VjcmV0"}`, testID),
		"another tunnel":  `{"a":"` + account + `","t":"00000000-0000-4000-8000-00000000dead","s":"c2VjcmV0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf(`{"success":true,"result":%q}`, base64.StdEncoding.EncodeToString([]byte(credentials)))
			_, err := providerReturning(t, body).Token(t.Context(), testID)
			wantUnavailable(t, err, 0)
		})
	}
}

func TestUnparsableRemoteConfigurationIsAPermanentError(t *testing.T) {
	p := providerReturning(t, `{"result":{"version":3,"config":{"originRequest":{"connectTimeout":"30s"}}}}`)
	_, _, err := p.Configuration(t.Context(), testID)
	if err == nil || provider.IsTransient(err) || !strings.Contains(err.Error(), "connectTimeout") {
		t.Errorf("got %v, want a permanent error that names connectTimeout", err)
	}
}

func TestLocallyManagedTunnelIsReported(t *testing.T) {
	// A configuration without a source is remotely managed.
	for source, local := range map[string]bool{`"local"`: true, `"cloudflare"`: false, `""`: false, `null`: false} {
		t.Run(source, func(t *testing.T) {
			p := providerReturning(t, fmt.Sprintf(`{"success":true,"result":{"version":3,"config":null,"source":%s}}`, source))
			_, version, readErr := p.Configuration(t.Context(), testID)
			_, writeErr := p.Configure(t.Context(), testID, configuration("a"))
			for method, err := range map[string]error{"Configuration": readErr, "Configure": writeErr} {
				if errors.Is(err, provider.ErrLocallyManaged) != local || err != nil && !local {
					t.Errorf("%s: got %v, locally managed %t", method, err, local)
				}
			}
			if !local && version != 3 {
				t.Errorf("version = %d, want 3", version)
			}
			tunnel := fmt.Sprintf(`{"id":"1","name":"edge","config_src":%s}`, source)
			wantLocal(t, "FindTunnel", local)(providerReturning(t, `{"success":true,"result":[`+tunnel+`]}`).FindTunnel(t.Context(), name))
			wantLocal(t, "Tunnel", local)(providerReturning(t, `{"success":true,"result":`+tunnel+`}`).Tunnel(t.Context(), "1"))
			wantLocal(t, "CreateTunnel", local)(providerReturning(t, `{"success":true,"result":`+tunnel+`}`).CreateTunnel(t.Context(), name))
		})
	}
}

func wantLocal(t *testing.T, method string, want bool) func(provider.Tunnel, error) {
	return func(tunnel provider.Tunnel, err error) {
		t.Helper()
		if err != nil || tunnel.Local != want {
			t.Errorf("%s: got %+v, %v, want local %t", method, tunnel, err, want)
		}
	}
}

func TestPendingReconnectIsNotConnected(t *testing.T) {
	for conns, connected := range map[string]bool{
		`[]`:   false,
		`null`: false,
		`[{"is_pending_reconnect":true},{"is_pending_reconnect":true}]`:  false,
		`[{"is_pending_reconnect":true},{"is_pending_reconnect":false}]`: true,
		`[{"is_pending_reconnect":true},{}]`:                             true,
	} {
		t.Run(conns, func(t *testing.T) {
			p := providerReturning(t, `{"success":true,"result":[
				{"id":"1","run_at":"2026-01-02T03:04:05.678Z","config_version":7,"conns":`+conns+`},{"id":"2"}]}`)
			got, err := p.Connections(t.Context(), testID)
			want := []provider.Connector{
				{ID: "1", Connected: connected, ConnectedAt: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), ConfigVersion: 7},
				{ID: "2"},
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v, connectors differ (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestInvalidConnectorsAreAnError(t *testing.T) {
	// An invalid list must not be treated as an empty list: the tunnel could then be deleted
	// while connectors are connected.
	for _, result := range []string{`[{"run_at":"2026-01-02T03:04:05Z"}]`, `{}`, `"connectors"`, `[{"id":"1","run_at":"yesterday"}]`} {
		got, err := providerReturning(t, `{"success":true,"result":`+result+`}`).Connections(t.Context(), testID)
		if wantUnavailable(t, err, 0); got != nil {
			t.Errorf("%s: connectors %+v", result, got)
		}
	}
}

func TestDisconnectAlwaysSendsTheConnectorID(t *testing.T) {
	// Without an ID, the request would disconnect all connectors.
	withEdge(t, func(t *testing.T, e *edge) {
		id := e.newTunnel(t)
		if err := e.Provider.Disconnect(t.Context(), id, ""); err == nil {
			t.Error("got no error for an empty connector ID")
		}
		e.wantCount(t, "", "", 0)
	})
	var query string
	p := newProvider(t, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(req *http.Request) (*http.Response, error) {
			query = req.URL.RawQuery
			return jsonResponse(http.StatusNotFound, `{"success":false,"errors":[{"code":1003,"message":"not found"}]}`), nil
		}),
	})
	if err := p.Disconnect(t.Context(), testID, "1&client_id="); err != nil || query != "client_id=1%26client_id%3D" {
		t.Errorf("query %q, error %v", query, err)
	}
}

func TestInvalidTunnelIDsAreNotSent(t *testing.T) {
	p := newProvider(t, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(req *http.Request) (*http.Response, error) {
			t.Errorf("request to %s", req.URL)
			return nil, io.EOF
		}),
	})
	for _, id := range []provider.TunnelID{"", "..", "a/b", "a?b", "%2e%2e"} {
		if _, err := p.Configure(t.Context(), id, configuration("a")); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
		if _, _, err := p.Configuration(t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
		if _, err := p.Token(t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
		if _, err := p.Tunnel(t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
		if err := p.RotateToken(t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
		if _, err := p.Connections(t.Context(), id); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
		if err := p.Disconnect(t.Context(), id, "connector"); err != nil {
			t.Errorf("%q: got %v", id, err)
		}
		if err := p.DeleteTunnel(t.Context(), id); err != nil {
			t.Errorf("%q: got %v", id, err)
		}
	}
}

func TestFindTunnelReadsAllPages(t *testing.T) {
	pages := map[string]string{
		"1": `{"id":"1","name":"EDGE"},{"id":"2","name":"edge","deleted_at":"2026-01-01T00:00:00Z"}`,
		"2": `{"id":"3","name":"edge-2"},{"id":"4","name":"edge"}`,
	}
	var queries []string
	p := newProvider(t, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(req *http.Request) (*http.Response, error) {
			queries = append(queries, req.URL.RawQuery)
			return jsonResponse(http.StatusOK, fmt.Sprintf(
				`{"success":true,"result":[%s],"result_info":{"per_page":2}}`, pages[req.URL.Query().Get("page")])), nil
		}),
	})
	tunnel, err := p.FindTunnel(t.Context(), name)
	if want := (provider.Tunnel{ID: "4", Name: "edge"}); err != nil || tunnel != want {
		t.Errorf("got %+v and %v, want %+v", tunnel, err, want)
	}
	want := []string{
		"is_deleted=false&name=edge&page=1&per_page=1000",
		"is_deleted=false&name=edge&page=2&per_page=1000",
	}
	if diff := cmp.Diff(want, queries); diff != "" {
		t.Errorf("queries differ (-want +got):\n%s", diff)
	}
}

func TestTunnelsReadsAllPages(t *testing.T) {
	pages := map[string]string{
		"1": `{"id":"1","name":"a","status":"healthy"},{"id":"2","name":"b","status":"degraded"}`,
		"2": `{"id":"2","name":"b"},{"id":"3","name":"c","deleted_at":"2026-01-01T00:00:00Z"}`,
		"3": `{"id":"4","name":"d"}`,
	}
	var queries []string
	p := newProvider(t, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(req *http.Request) (*http.Response, error) {
			queries = append(queries, req.URL.RawQuery)
			return jsonResponse(http.StatusOK, fmt.Sprintf(
				`{"success":true,"result":[%s],"result_info":{"per_page":2}}`, pages[req.URL.Query().Get("page")])), nil
		}),
	})
	got, err := p.Tunnels(t.Context())
	want := []provider.Tunnel{
		{ID: "1", Name: "a", Status: provider.TunnelHealthy},
		{ID: "2", Name: "b", Status: provider.TunnelDegraded},
		{ID: "4", Name: "d"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, tunnels differ (-want +got):\n%s", err, diff)
	}
	wantQueries := []string{
		"is_deleted=false&page=1&per_page=1000", "is_deleted=false&page=2&per_page=1000", "is_deleted=false&page=3&per_page=1000",
	}
	if diff := cmp.Diff(wantQueries, queries); diff != "" {
		t.Errorf("queries differ (-want +got):\n%s", diff)
	}
}

func TestIncompleteListReturnsAnError(t *testing.T) {
	p := newProvider(t, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(req *http.Request) (*http.Response, error) {
			if req.URL.Query().Get("page") == "1" {
				return jsonResponse(http.StatusOK, `{"success":true,"result":[{"id":"1","name":"a"}],"result_info":{"per_page":1}}`), nil
			}
			return jsonResponse(http.StatusForbidden, `{"success":false,"errors":[{"code":10000,"message":"no"}]}`), nil
		}),
	})
	if got, err := p.Tunnels(t.Context()); got != nil || !errors.Is(err, provider.ErrUnauthorized) {
		t.Errorf("got %+v and %v, want ErrUnauthorized", got, err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	requests := 0
	p := newProvider(t, Options{AccountID: account, APIToken: "token",
		Transport: transportFunc(func(*http.Request) (*http.Response, error) {
			requests++
			resp := jsonResponse(http.StatusTemporaryRedirect, `{}`)
			resp.Header.Set("Location", "https://elsewhere.example.com/")
			return resp, nil
		}),
	})
	_, _, err := p.Configuration(t.Context(), testID)
	wantUnavailable(t, err, 0)
	if requests != 1 {
		t.Errorf("%d requests, want 1", requests)
	}
}

func TestRequestBodyContainsUnknownFields(t *testing.T) {
	c := provider.Configuration{
		UnknownFields: map[string]json.RawMessage{"warp-routing": json.RawMessage(`{"enabled":true}`)},
	}
	body, err := encode(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"config":{"ingress":[],"warp-routing":{"enabled":true}}}`; string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
	if len(c.UnknownFields) != 1 {
		t.Error("encode modified its argument")
	}
}
