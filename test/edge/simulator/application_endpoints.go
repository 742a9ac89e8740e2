package simulator

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

const (
	// The documentation states neither how many applications a page contains by default,
	// nor the limit. Clients in public repositories ask for 100, 500 and 1,000.
	defaultApplicationsPerPage = 25
	maxApplicationsPerPage     = 1000
)

// accessEndpoints returns the endpoints for the applications of Cloudflare Access, reusable
// policies and tags.
func (s *Server) accessEndpoints() map[string]endpoint {
	const (
		account      = basePath + "/accounts/{account}/access"
		applications = account + "/apps"
		application  = applications + "/{application}"
	)
	read := func(call endpoint) endpoint { return s.authorized(call, AccessRead, AccessEdit) }
	edit := func(call endpoint) endpoint { return s.authorized(call, AccessEdit) }
	return map[string]endpoint{
		"GET " + applications:                    read(s.listApplications),
		"POST " + applications:                   edit(s.createApplication),
		"GET " + application:                     read(s.getApplication),
		"PUT " + application:                     edit(s.putApplication),
		"DELETE " + application:                  edit(s.deleteApplication),
		"POST " + application + "/revoke_tokens": edit(s.revokeTokens),
		"GET " + account + "/policies":           read(s.listPolicies),
		"GET " + account + "/tags":               read(s.listTags),
		"POST " + account + "/tags":              edit(s.createTag),
		"GET " + account + "/tags/{tag}":         read(s.getTag),
		"DELETE " + account + "/tags/{tag}":      edit(s.deleteTag),
	}
}

// applicationFilters are the query parameters that select applications. The simulator
// supports only exact matches.
var applicationFilters = map[string]func(access.Application, string) bool{
	"name":   func(a access.Application, value string) bool { return a.Name == value },
	"domain": func(a access.Application, value string) bool { return slices.Contains(a.Domains, value) },
	"aud":    func(a access.Application, value string) bool { return a.AUD == value },
}

func (s *Server) listApplications(r *http.Request) response {
	query := r.URL.Query()
	if err := checkParameters(query, applicationFilters, "page", "per_page"); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, err.Error())
	}
	found := slices.DeleteFunc(s.options.Access.Applications(r.PathValue("account")), func(a access.Application) bool {
		return !matchesAll(query, applicationFilters, a)
	})
	return page(query, found, defaultApplicationsPerPage, maxApplicationsPerPage)
}

func (s *Server) createApplication(r *http.Request) response {
	return withStatus(http.StatusCreated, withAccessBody(r, func(body json.RawMessage) (access.Application, error) {
		return s.options.Access.Create(r.PathValue("account"), body)
	}))
}

func (s *Server) getApplication(r *http.Request) response {
	return accessResult(s.options.Access.Application(r.PathValue("account"), r.PathValue("application")))
}

func (s *Server) putApplication(r *http.Request) response {
	return withAccessBody(r, func(body json.RawMessage) (access.Application, error) {
		return s.options.Access.Replace(r.PathValue("account"), r.PathValue("application"), body)
	})
}

func (s *Server) deleteApplication(r *http.Request) response {
	id := r.PathValue("application")
	return withStatus(http.StatusAccepted,
		accessResult(map[string]string{"id": id}, s.options.Access.Delete(r.PathValue("account"), id)))
}

// revokeTokens revokes an application's tokens. Its result is empty, and only this endpoint's
// status is 202 according to the documentation.
func (s *Server) revokeTokens(r *http.Request) response {
	return withStatus(http.StatusAccepted,
		accessResult(struct{}{}, s.options.Access.Revoke(r.PathValue("account"), r.PathValue("application"))))
}

func (s *Server) listPolicies(r *http.Request) response {
	return page(r.URL.Query(), s.options.Access.Policies(r.PathValue("account")), defaultApplicationsPerPage, maxApplicationsPerPage)
}

// tagView is a tag in an API response.
type tagView struct {
	Name string `json:"name"`
}

func (s *Server) listTags(r *http.Request) response {
	views := []tagView{}
	for _, name := range s.options.Access.Tags(r.PathValue("account")) {
		views = append(views, tagView{name})
	}
	return page(r.URL.Query(), views, defaultApplicationsPerPage, maxApplicationsPerPage)
}

func (s *Server) createTag(r *http.Request) response {
	return withStatus(http.StatusCreated, withAccessBody(r, func(t tagView) (tagView, error) {
		return t, s.options.Access.CreateTag(r.PathValue("account"), t.Name)
	}))
}

func (s *Server) getTag(r *http.Request) response {
	name := r.PathValue("tag")
	if !slices.Contains(s.options.Access.Tags(r.PathValue("account")), name) {
		return failure(http.StatusNotFound, access.CodeInvalidRequest, "access.api.error.not_found")
	}
	return success(tagView{name})
}

func (s *Server) deleteTag(r *http.Request) response {
	s.options.Access.DeleteTag(r.PathValue("account"), r.PathValue("tag"))
	return withStatus(http.StatusAccepted, success(tagView{r.PathValue("tag")}))
}

// withAccessBody decodes the request's body and responds with the result of call.
func withAccessBody[Body, Result any](r *http.Request, call func(Body) (Result, error)) response {
	var body Body
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, access.CodeInvalidRequest, "access.api.error.invalid_request: "+err.Error())
	}
	return accessResult(call(body))
}

// accessResult returns a response with the value, or with the error of package access.
func accessResult[T any](value T, err error) response {
	var refused *access.Error
	if errors.As(err, &refused) {
		return failure(refused.Status, refused.Code, refused.Text)
	}
	return success(value)
}

// withStatus replaces the status of a response without errors.
func withStatus(status int, r response) response {
	if r.envelope.Success {
		r.status = status
	}
	return r
}
