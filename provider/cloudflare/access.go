package cloudflare

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zero_trust"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Access calls the Cloudflare API for the applications of Cloudflare Access in one account.
// It is safe for concurrent use.
type Access struct {
	connection
	accountID           string
	applications        *zero_trust.AccessApplicationService
	policies            *zero_trust.AccessPolicyService
	tags                *zero_trust.AccessTagService
	applicationsPerPage int64
}

var _ provider.Access = (*Access)(nil)

// applicationsPerPage is how many applications or policies a list requests at a time. The
// API's documentation states no limit. Many clients in public repositories use this number.
const applicationsPerPage = 100

// OpenAccess returns an Access, or an error that names every invalid option. It sends no
// request.
//
// o are the options of the account, and apiToken is the API token for Access; if it is empty,
// o's token is. Both tokens share the API request budget of o's, because Cloudflare counts
// the requests of a user, not of a token. They do not share the limit of requests that wait
// while the API does not respond: an Access that waits occupies no worker of a tunnel.
func (c *Client) OpenAccess(o Options, apiToken string) (*Access, error) {
	token, err := o.APIToken, o.validate()
	if apiToken != "" {
		token = apiToken
		err = errors.Join(err, Options{APIToken: apiToken}.checkAPIToken())
	}
	if err != nil {
		return nil, fmt.Errorf("cloudflare options for Access: %w", err)
	}
	options := o.requestOptions(token)
	a := &Access{
		connection:          c.connect(o, token),
		accountID:           o.AccountID,
		applications:        zero_trust.NewAccessApplicationService(options...),
		policies:            zero_trust.NewAccessPolicyService(options...),
		tags:                zero_trust.NewAccessTagService(options...),
		applicationsPerPage: applicationsPerPage,
	}
	a.outage = &outage{}
	return a, nil
}

// Format writes only the account ID, for all verbs.
func (a *Access) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "cloudflare.Access{AccountID:%q}", a.accountID)
}

// do runs a method with the priority of Access. action describes it in errors.
func (a *Access) do(ctx context.Context, action string, method func(context.Context) error) error {
	return run(provider.WithPriority(ctx, provider.PriorityAccess), action, method)
}

// Policies is documented at [provider.Access].
func (a *Access) Policies(ctx context.Context) (all []provider.AccessPolicy, err error) {
	err = a.do(ctx, "list the policies of Access", func(ctx context.Context) error {
		var params zero_trust.AccessPolicyListParams
		params.AccountID.Value = a.accountID
		params.PerPage.Value, params.PerPage.Present = a.applicationsPerPage, true
		views, err := listAll(ctx, a.send, "policies", func(p policyView) string { return p.ID },
			func(page float64, options ...option.RequestOption) error {
				params.Page.Value, params.Page.Present = int64(page), true
				_, err := a.policies.List(ctx, params, options...)
				return err
			})
		for _, v := range views {
			if v.ID == "" || v.Decision == "" {
				return unexpected("a policy without an ID or decision")
			}
			all = append(all, provider.AccessPolicy{ID: provider.AccessPolicyID(v.ID), Name: v.Name, Decision: v.Decision})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// EnsureTag is documented at [provider.Access]. What the API returns for a tag that exists is
// not documented. So if it refuses to create the tag, EnsureTag reads it.
func (a *Access) EnsureTag(ctx context.Context, name string) error {
	return a.do(ctx, fmt.Sprintf("create tag %q", name), func(ctx context.Context) error {
		if !isPathSegment(name) {
			return errors.New("the name of a tag has only letters and digits")
		}
		err := a.createTag(ctx, name)
		if !isRefused(err) {
			return err
		}
		var params zero_trust.AccessTagGetParams
		params.AccountID.Value = a.accountID
		exists := a.send(ctx, idempotent, func(options ...option.RequestOption) error {
			_, err := a.tags.Get(ctx, name, params, options...)
			return err
		})
		if exists == nil || provider.IsTransient(exists) {
			return exists
		}
		return err
	})
}

func (a *Access) createTag(ctx context.Context, name string) error {
	var params zero_trust.AccessTagNewParams
	params.AccountID.Value = a.accountID
	params.Name.Value, params.Name.Present = name, true
	return a.send(ctx, sendOnce, func(options ...option.RequestOption) error {
		_, err := a.tags.New(ctx, params, options...)
		return err
	})
}
