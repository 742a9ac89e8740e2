package cloudflare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Applications is documented at [provider.Access].
func (a *Access) Applications(ctx context.Context) (all []provider.Application, err error) {
	err = a.do(ctx, "list the applications of Access", func(ctx context.Context) error {
		var params zero_trust.AccessApplicationListParams
		params.AccountID.Value = a.accountID
		params.PerPage.Value, params.PerPage.Present = a.applicationsPerPage, true
		views, err := listAll(ctx, a.send, "applications", func(v applicationView) string { return v.ID },
			func(page float64, options ...option.RequestOption) error {
				params.Page.Value, params.Page.Present = int64(page), true
				_, err := a.applications.List(ctx, params, options...)
				return err
			})
		for _, v := range views {
			application, err := v.application()
			if err != nil {
				return err
			}
			all = append(all, application)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// applicationResponse is the API's response with an application.
type applicationResponse struct {
	Result *applicationView `json:"result"`
}

func (r applicationResponse) application() (provider.Application, error) {
	if r.Result == nil {
		return provider.Application{}, unexpected("no application")
	}
	return r.Result.application()
}

// Create is documented at [provider.Access].
func (a *Access) Create(ctx context.Context, spec provider.ApplicationSpec) (created provider.Application, err error) {
	err = a.do(ctx, fmt.Sprintf("create the application for %q", spec.Hostname), func(ctx context.Context) error {
		var params zero_trust.AccessApplicationNewParams
		params.AccountID.Value = a.accountID
		created, err = a.write(ctx, provider.Application{}, spec, func(options ...option.RequestOption) error {
			_, err := a.applications.New(ctx, params, options...)
			return err
		})
		return err
	})
	return created, err
}

// Update is documented at [provider.Access].
func (a *Access) Update(
	ctx context.Context, last provider.Application, spec provider.ApplicationSpec,
) (updated provider.Application, err error) {
	err = a.do(ctx, fmt.Sprintf("update the application for %q", spec.Hostname), func(ctx context.Context) error {
		current, err := a.unchanged(ctx, last)
		if err != nil {
			return err
		}
		var params zero_trust.AccessApplicationUpdateParams
		params.AccountID.Value = a.accountID
		updated, err = a.write(ctx, current, spec, func(options ...option.RequestOption) error {
			_, err := a.applications.Update(ctx, string(last.ID), params, options...)
			return err
		})
		return err
	})
	return updated, err
}

// write sends a request with the fields of the spec and the unknown fields of current.
func (a *Access) write(
	ctx context.Context, current provider.Application, spec provider.ApplicationSpec,
	request func(options ...option.RequestOption) error,
) (provider.Application, error) {
	body, err := json.Marshal(applicationFields(current, spec))
	if err != nil {
		return provider.Application{}, fmt.Errorf("encode the application: %w", err)
	}
	var response applicationResponse
	err = a.send(ctx, sendOnce, func(options ...option.RequestOption) error {
		return request(append(options,
			option.WithRequestBody("application/json", body), option.WithResponseBodyInto(&response))...)
	})
	if err != nil {
		return provider.Application{}, err
	}
	written, err := response.application()
	if err == nil && (written.AUDTag == "" || !slices.Contains(written.Domains, spec.Hostname)) {
		err = unexpected("an application without an AUD tag or for another hostname")
	}
	if err != nil {
		return provider.Application{}, err
	}
	return written, nil
}

// unchanged reads an application. It returns [provider.ErrApplicationChanged] if it
// differs from last.
func (a *Access) unchanged(ctx context.Context, last provider.Application) (provider.Application, error) {
	if err := checkApplication(last.ID); err != nil {
		return provider.Application{}, err
	}
	var params zero_trust.AccessApplicationGetParams
	params.AccountID.Value = a.accountID
	var response applicationResponse
	err := a.send(ctx, idempotent, func(options ...option.RequestOption) error {
		_, err := a.applications.Get(ctx, string(last.ID), params, append(options, option.WithResponseBodyInto(&response))...)
		return err
	})
	if err != nil {
		return provider.Application{}, err
	}
	current, err := response.application()
	if err == nil && last.HasChanged(current) {
		err = provider.ErrApplicationChanged
	}
	if err != nil {
		return provider.Application{}, err
	}
	return current, nil
}

// Delete is documented at [provider.Access].
func (a *Access) Delete(ctx context.Context, last provider.Application) error {
	return a.do(ctx, fmt.Sprintf("delete application %q", last.ID), func(ctx context.Context) error {
		_, err := a.unchanged(ctx, last)
		if err == nil {
			err = a.remove(ctx, last)
		}
		if errors.Is(err, provider.ErrNotFound) {
			return nil
		}
		return err
	})
}

// remove deletes the application. If the response does not confirm it, a read must.
func (a *Access) remove(ctx context.Context, last provider.Application) error {
	var params zero_trust.AccessApplicationDeleteParams
	params.AccountID.Value = a.accountID
	body, err := a.sendForBody(ctx, func(options ...option.RequestOption) error {
		_, err := a.applications.Delete(ctx, string(last.ID), params, options...)
		return err
	})
	if err != nil {
		return err
	}
	var response struct{ Result struct{ ID string } }
	if json.Unmarshal(body, &response) == nil && response.Result.ID == string(last.ID) {
		return nil
	}
	if _, err = a.unchanged(ctx, last); err == nil {
		err = unexpected("the application still exists")
	}
	return err
}

// RevokeTokens is documented at [provider.Access].
func (a *Access) RevokeTokens(ctx context.Context, id provider.ApplicationID) error {
	return a.do(ctx, fmt.Sprintf("revoke the tokens of application %q", id), func(ctx context.Context) error {
		if err := checkApplication(id); err != nil {
			return err
		}
		var params zero_trust.AccessApplicationRevokeTokensParams
		params.AccountID.Value = a.accountID
		body, err := a.sendForBody(ctx, func(options ...option.RequestOption) error {
			_, err := a.applications.RevokeTokens(ctx, string(id), params, options...)
			return err
		})
		if err != nil || len(bytes.TrimSpace(body)) == 0 {
			return err
		}
		var response struct{ Success bool }
		if json.Unmarshal(body, &response) != nil || !response.Success {
			return unexpected("no success") // for example a page about maintenance
		}
		return nil
	})
}

// sendForBody sends a request, and returns the response's body, whose form is not reliable.
func (a *Access) sendForBody(ctx context.Context, call func(options ...option.RequestOption) error) (body []byte, err error) {
	err = a.send(ctx, sendOnce, func(options ...option.RequestOption) error {
		return call(append(options, option.WithResponseBodyInto(&body))...)
	})
	return body, err
}

// checkApplication returns an error for an ID that would change the request path.
func checkApplication(id provider.ApplicationID) error {
	if !isPathSegment(string(id)) {
		return fmt.Errorf("%w: %q is not the ID of an application", provider.ErrNotFound, id)
	}
	return nil
}
