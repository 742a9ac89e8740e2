package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
)

// Access implements [provider.Access] with the applications of one account in a database, for
// tests. It behaves like the real Access with a healthy API, records all calls, and returns
// the errors that a test scripts. It is safe for concurrent use.
//
// The database is the simulator's, as for a [DNS]. A test changes applications, policies and
// tags through the database like the dashboard does. Several Accesses can have one account,
// as several installations of the controller do.
type Access struct {
	mu          sync.Mutex
	database    *access.Database
	account     string
	permissions []string // nil: all
	scripted    script
	calls       []AccessCall
}

var _ provider.Access = (*Access)(nil)

// NewAccess returns an Access for an account in the database, with all permissions.
func NewAccess(database *access.Database, account string) *Access {
	return &Access{database: database, account: account, scripted: script{}}
}

// Applications is documented at [provider.Access].
func (a *Access) Applications(ctx context.Context) (all []provider.Application, err error) {
	err = a.do(ctx, AccessCall{Op: OpApplications}, func() error {
		for _, stored := range a.database.Applications(a.account) {
			all = append(all, asApplication(stored))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Create is documented at [provider.Access].
func (a *Access) Create(ctx context.Context, spec provider.ApplicationSpec) (created provider.Application, err error) {
	err = a.do(ctx, AccessCall{Op: OpCreateApplication, Spec: spec}, func() error {
		stored, err := a.database.Create(a.account, applicationBody(provider.Application{}, spec))
		created = asApplication(stored)
		return accessError(err)
	})
	return orZero(created, err)
}

// Update is documented at [provider.Access].
func (a *Access) Update(
	ctx context.Context, last provider.Application, spec provider.ApplicationSpec,
) (updated provider.Application, err error) {
	err = a.do(ctx, AccessCall{Op: OpUpdateApplication, Last: last, Spec: spec}, func() error {
		current, err := a.unchanged(last)
		if err != nil {
			return err
		}
		stored, err := a.database.Replace(a.account, string(last.ID), applicationBody(current, spec))
		updated = asApplication(stored)
		return accessError(err)
	})
	return orZero(updated, err)
}

// Delete is documented at [provider.Access].
func (a *Access) Delete(ctx context.Context, last provider.Application) error {
	return a.do(ctx, AccessCall{Op: OpDeleteApplication, Last: last}, func() error {
		if _, err := a.unchanged(last); errors.Is(err, provider.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		return accessError(a.database.Delete(a.account, string(last.ID)))
	})
}

// RevokeTokens is documented at [provider.Access].
func (a *Access) RevokeTokens(ctx context.Context, id provider.ApplicationID) error {
	return a.do(ctx, AccessCall{Op: OpRevokeTokens, Last: provider.Application{ID: id}}, func() error {
		return accessError(a.database.Revoke(a.account, string(id)))
	})
}

// Policies is documented at [provider.Access].
func (a *Access) Policies(ctx context.Context) (all []provider.AccessPolicy, err error) {
	err = a.do(ctx, AccessCall{Op: OpPolicies}, func() error {
		for _, p := range a.database.Policies(a.account) {
			all = append(all, provider.AccessPolicy{ID: provider.AccessPolicyID(p.ID), Name: p.Name, Decision: p.Decision})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// EnsureTag is documented at [provider.Access].
func (a *Access) EnsureTag(ctx context.Context, name string) error {
	return a.do(ctx, AccessCall{Op: OpEnsureTag, Tag: name}, func() error {
		if slices.Contains(a.database.Tags(a.account), name) {
			return nil
		}
		return accessError(a.database.CreateTag(a.account, name))
	})
}

// do makes a call: it checks the context and the permissions, returns scripted errors,
// records the call and wraps its error. It is locked while it calls apply.
func (a *Access) do(ctx context.Context, call AccessCall, apply func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	call.Priority = provider.PriorityOf(ctx)
	if call.Err = ctx.Err(); call.Err == nil {
		call.Err = a.scripted.run(call.Op, func() error {
			if !a.isPermitted(call.Op) {
				return provider.ErrForbidden
			}
			return apply()
		})
	}
	a.calls = append(a.calls, call)
	if call.Err != nil {
		return fmt.Errorf("%s: %w", call.Op, call.Err)
	}
	return nil
}

// unchanged returns the application as it is stored now.
func (a *Access) unchanged(last provider.Application) (provider.Application, error) {
	stored, err := a.database.Application(a.account, string(last.ID))
	if err != nil {
		return provider.Application{}, accessError(err)
	}
	current := asApplication(stored)
	if last.HasChanged(current) {
		return provider.Application{}, provider.ErrApplicationChanged
	}
	return current, nil
}

func orZero(a provider.Application, err error) (provider.Application, error) {
	if err != nil {
		return provider.Application{}, err
	}
	return a, nil
}

// accessError returns the error of a [provider.Access] for one of the database.
func accessError(err error) error {
	e, ok := errors.AsType[*access.Error](err)
	if !ok {
		return err
	}
	for text, class := range map[string]error{
		"application_already_exists": provider.ErrApplicationExists,
		"unknown_application":        provider.ErrNotFound,
		"does not belong to zone":    provider.ErrNoZone,
		"contain a tag":              provider.ErrTagNotFound,
		"policy_not_found":           provider.ErrPolicyNotFound,
		"maximum number":             provider.ErrQuotaExceeded,
	} {
		if strings.Contains(e.Text, text) {
			return fmt.Errorf("%w: %w", class, err)
		}
	}
	return err
}

// asApplication converts an application of the database.
func asApplication(stored access.Application) provider.Application {
	a := provider.Application{
		ID: provider.ApplicationID(stored.ID), AUDTag: stored.AUD, Name: stored.Name, Type: stored.Type,
		SessionDuration: stored.SessionDuration, BindingCookie: stored.BindingCookie, Tags: stored.Tags,
	}
	if stored.Protects() {
		a.Domains = stored.Domains
	}
	for _, p := range stored.Policies {
		if p.Reusable {
			a.Policies = append(a.Policies, provider.AccessPolicyID(p.ID))
		} else {
			a.OtherPolicies++
		}
	}
	a.Bypass = len(stored.Policies) == 1 && a.OtherPolicies == 1 && stored.Policies[0].BypassesEveryone()
	a.CORS = asCORS(stored.CORS)
	a.UnknownFields = map[string][]byte{}
	for name, value := range stored.OtherFields() {
		a.UnknownFields[name] = value
	}
	return a
}

func asCORS(stored *access.CORS) *provider.CORS {
	if stored == nil {
		return nil
	}
	c := &provider.CORS{
		AllowedOrigins: stored.AllowedOrigins, AllowedMethods: stored.AllowedMethods, AllowedHeaders: stored.AllowedHeaders,
		AllowAllOrigins: stored.AllowAllOrigins, AllowAllHeaders: stored.AllowAllHeaders,
		AllowCredentials: stored.AllowCredentials, MaxAge: stored.MaxAge,
	}
	if stored.AllowAllMethods {
		c.AllowedMethods = []string{"*"}
	}
	if c.IsEmpty() {
		return nil
	}
	return c
}

// applicationBody returns the request that the real Access sends.
func applicationBody(current provider.Application, spec provider.ApplicationSpec) json.RawMessage {
	fields := map[string]any{}
	for name, value := range current.UnknownFields {
		fields[name] = json.RawMessage(value)
	}
	if current.ID == "" {
		fields["app_launcher_visible"] = !spec.Bypass && !strings.HasPrefix(spec.Hostname, "*.")
	}
	fields["type"] = "self_hosted"
	if current.Type != "" {
		fields["type"] = current.Type
	}
	fields["name"], fields["domain"], fields["tags"] = spec.Name, spec.Hostname, spec.Tags
	fields["destinations"] = []map[string]string{{"type": "public", "uri": spec.Hostname}}
	fields["session_duration"] = spec.SessionDuration.String()
	fields["enable_binding_cookie"] = spec.BindingCookie
	fields["policies"] = spec.Policies
	if spec.Bypass {
		fields["policies"] = []any{map[string]any{"name": "Bypass", "decision": "bypass", "include": []any{map[string]any{"everyone": struct{}{}}}}}
	}
	if spec.CORS != nil {
		delete(fields, "options_preflight_bypass")
		fields["cors_headers"] = access.CORS{
			AllowAllHeaders: spec.CORS.AllowAllHeaders, AllowAllOrigins: spec.CORS.AllowAllOrigins,
			AllowCredentials: spec.CORS.AllowCredentials, AllowedHeaders: spec.CORS.AllowedHeaders,
			AllowedMethods: spec.CORS.AllowedMethods, AllowedOrigins: spec.CORS.AllowedOrigins, MaxAge: spec.CORS.MaxAge,
		}
	}
	body, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("fake: encode an application: %v", err)) // an unknown field is not JSON
	}
	return body
}
