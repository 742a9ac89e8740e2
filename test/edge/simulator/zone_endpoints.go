package simulator

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// zoneEndpoints returns the endpoints that read zones, their certificates and settings.
func (s *Server) zoneEndpoints() map[string]endpoint {
	const zone = basePath + "/zones/{zone}"
	return map[string]endpoint{
		"GET " + basePath + "/zones":             s.listZones,
		"GET " + zone:                            s.zoneEndpoint(unauthorized, getZone, ZoneRead),
		"GET " + zone + "/ssl/certificate_packs": s.zoneEndpoint(authenticationError, listCertificatePacks, SSLRead),
		"GET " + zone + "/settings/{setting}":    s.zoneEndpoint(unauthorized, getSetting, SettingsRead),
	}
}

// zoneEndpoint returns an endpoint that finds the request's zone and calls call, if the
// request's token has one of the permissions for it. Otherwise, and for a zone that does not
// exist, it returns refused: Cloudflare does not reveal which zones exist.
func (s *Server) zoneEndpoint(
	refused func() response, call func(*http.Request, zones.Zone) response, permissions ...Permission,
) endpoint {
	return func(r *http.Request) response {
		if !s.acceptsToken(r) {
			return invalidAccessToken()
		}
		zone, exists := s.options.Zones.Zone(r.PathValue("zone"))
		if !exists || !s.permits(r, zone.ID, permissions...) {
			return refused()
		}
		return call(r, zone)
	}
}

// invalidAccessToken is the response of zone endpoints to an unknown token.
func invalidAccessToken() response {
	return failure(http.StatusForbidden, codeUnauthorized, "Invalid access token")
}

// unauthorized is the response about a zone that the token cannot read
// (octodns/octodns-cloudflare#60).
func unauthorized() response {
	return failure(http.StatusForbidden, codeUnauthorized, "Unauthorized to access requested resource")
}

// authenticationError is the response about a part of a zone that the token cannot read or
// change (hieunc229/mailflare#1 and cloudflare/terraform-provider-cloudflare#913).
func authenticationError() response {
	return failure(http.StatusForbidden, codeAuthentication, "Authentication error")
}

// zoneView is a zone in an API response.
type zoneView struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Status      string      `json:"status"`
	Type        string      `json:"type"`
	Account     accountView `json:"account"`
	Plan        planView    `json:"plan"`
	CreatedOn   any         `json:"created_on"`
	ActivatedOn any         `json:"activated_on"` // null for a pending zone
	ModifiedOn  any         `json:"modified_on"`
	NameServers []string    `json:"name_servers"`
	Paused      bool        `json:"paused"`
}

type accountView struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type planView struct {
	Name     string `json:"name"`
	LegacyID string `json:"legacy_id"`
}

func viewZone(z zones.Zone) zoneView {
	view := zoneView{
		ID: z.ID, Name: z.Name, Status: string(z.Status), Type: string(z.Type),
		Account:   accountView{ID: z.Account, Name: accountName(z)},
		Plan:      planView{Name: string(z.Plan), LegacyID: string(z.Plan)},
		CreatedOn: z.CreatedOn, ModifiedOn: z.CreatedOn,
		NameServers: []string{"ada.ns.cloudflare.com", "bob.ns.cloudflare.com"},
	}
	if z.Status == zones.Active {
		view.ActivatedOn = z.CreatedOn
	}
	return view
}

// accountName returns the name of a zone's account.
func accountName(z zones.Zone) string { return "Account " + z.Account }

func getZone(_ *http.Request, z zones.Zone) response { return success(viewZone(z)) }

// listZones returns one page of the zones that match the query and that the token can read.
// A token that can read no zone at all gets an error; whether Cloudflare returns an empty
// list instead is uncertain.
func (s *Server) listZones(r *http.Request) response {
	if !s.acceptsToken(r) {
		return invalidAccessToken()
	}
	query := r.URL.Query()
	if err := checkParameters(query, zoneFilters, "page", "per_page", "order", "direction"); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	all := s.options.Zones.Zones()
	readable := slices.DeleteFunc(slices.Clone(all), func(z zones.Zone) bool { return !s.permits(r, z.ID, ZoneRead) })
	if len(readable) == 0 && len(all) > 0 {
		return unauthorized()
	}
	found := slices.DeleteFunc(readable, func(z zones.Zone) bool { return !matchesAll(query, zoneFilters, z) })
	if err := sortBy(found, query, zoneOrders); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	views := make([]zoneView, len(found))
	for i, z := range found {
		views[i] = viewZone(z)
	}
	return page(query, views, 20, 50)
}

// zoneFilters are the query parameters that select zones.
var zoneFilters = map[string]func(z zones.Zone, value string) bool{
	"name":         matchesZoneName,
	"account.id":   func(z zones.Zone, value string) bool { return z.Account == value },
	"account.name": func(z zones.Zone, value string) bool { return accountName(z) == value },
	"status":       func(z zones.Zone, value string) bool { return string(z.Status) == value },
	"type": func(z zones.Zone, value string) bool {
		return slices.Contains(strings.Split(value, ","), string(z.Type))
	},
}

// matchesZoneName supports the filter operators of the zone list, such as
// "starts_with:example". Without an operator, the name is exact.
func matchesZoneName(z zones.Zone, value string) bool {
	operator, operand, ok := strings.Cut(value, ":")
	if !ok {
		operator, operand = "equal", value
	}
	operand = strings.ToLower(operand)
	switch operator {
	case "equal":
		return z.Name == operand
	case "not_equal":
		return z.Name != operand
	case "starts_with":
		return strings.HasPrefix(z.Name, operand)
	case "ends_with":
		return strings.HasSuffix(z.Name, operand)
	case "contains":
		return strings.Contains(z.Name, operand)
	}
	return false
}

// zoneOrders compare zones by the value of the query parameter "order".
var zoneOrders = map[string]func(a, b zones.Zone) int{
	"":           func(zones.Zone, zones.Zone) int { return 0 }, // as they were added
	"name":       func(a, b zones.Zone) int { return strings.Compare(a.Name, b.Name) },
	"status":     func(a, b zones.Zone) int { return cmp.Compare(a.Status, b.Status) },
	"account.id": func(a, b zones.Zone) int { return strings.Compare(a.Account, b.Account) },
}

// listCertificatePacks returns one page of the zone's active certificate packs, or of all of
// them with status=all.
func listCertificatePacks(r *http.Request, z zones.Zone) response {
	query := r.URL.Query()
	if err := checkParameters(query, nothing, "page", "per_page", "status"); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	packs := slices.DeleteFunc(slices.Clone(z.CertificatePacks), func(p zones.CertificatePack) bool {
		return query.Get("status") != "all" && p.Status != "active"
	})
	views := make([]certificatePackView, len(packs))
	for i, p := range packs {
		views[i] = certificatePackView{CertificatePack: p, Certificates: []struct{}{}}
	}
	return page(query, views, 20, 50)
}

// certificatePackView is a certificate pack in an API response. The certificates
// themselves are not simulated.
type certificatePackView struct {
	zones.CertificatePack
	Certificates []struct{} `json:"certificates"`
}

// settingView is a zone's setting in an API response.
type settingView struct {
	ID         string `json:"id"`
	Value      string `json:"value"`
	Editable   bool   `json:"editable"`
	ModifiedOn any    `json:"modified_on"` // null for a setting that was never changed
}

// getSetting returns one setting. (Source of the error for an unknown name: a report that the
// setting "grpc" cannot be changed with the API.)
func getSetting(r *http.Request, z zones.Zone) response {
	name := r.PathValue("setting")
	value, ok := z.Setting(name)
	if !ok {
		return failure(http.StatusBadRequest, codeUnknownSetting, "Unrecognized zone setting name")
	}
	return success(settingView{ID: name, Value: value, Editable: true})
}

// nothing is the filters of a list without filters.
var nothing = map[string]func(any, string) bool{}
