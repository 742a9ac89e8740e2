package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/ssl"
	"github.com/cloudflare/cloudflare-go/v7/zones"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// DNS calls the Cloudflare API for the zones that one API token can access. It is safe for
// concurrent use.
type DNS struct {
	connection
	zones          *zones.ZoneService
	records        *dns.RecordService
	usage          *dns.UsageZoneService
	certificates   *ssl.CertificatePackService
	settings       *zones.SettingService
	recordsPerPage int
}

var _ provider.DNS = (*DNS)(nil)

// recordsPerPage is how many records a list requests at a time. The API's documentation
// allows 5,000,000. A page of this size has about two megabytes, and arrives long before a
// call times out.
const recordsPerPage = 5000

// OpenDNS returns a DNS, or an error that names every invalid option. It sends no request.
//
// o are the options of the account that owns the zones, and apiToken is the API token for
// DNS; if it is empty, o's token is. The account's ID can be empty: no request needs it. Both tokens share the API request budget of o's,
// because Cloudflare counts the requests of a user, not of a token. They do not share the
// limit of requests that wait while the API does not respond: a DNS that waits occupies no
// worker of a tunnel.
func (c *Client) OpenDNS(o Options, apiToken string) (*DNS, error) {
	token := o.APIToken
	err := errors.Join(o.checkAPIToken(), o.checkBaseURL())
	if o.AccountID != "" {
		err = o.validate()
	}
	if apiToken != "" {
		token = apiToken
		err = errors.Join(err, Options{APIToken: apiToken}.checkAPIToken())
	}
	if err != nil {
		return nil, fmt.Errorf("cloudflare options for DNS: %w", err)
	}
	options := o.requestOptions(token)
	d := &DNS{
		connection:     c.connect(o, token),
		zones:          zones.NewZoneService(options...),
		records:        dns.NewRecordService(options...),
		usage:          dns.NewUsageZoneService(options...),
		certificates:   ssl.NewCertificatePackService(options...),
		settings:       zones.NewSettingService(options...),
		recordsPerPage: recordsPerPage,
	}
	d.outage = &outage{}
	return d, nil
}

// Format writes no field, for all verbs.
func (d *DNS) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, "cloudflare.DNS{}") }

// read makes a call about a zone that changes nothing. action describes the call.
func (d *DNS) read(ctx context.Context, action string, zone provider.ZoneID, method func(context.Context) error) error {
	return run(provider.WithPriority(ctx, provider.PriorityDNS), fmt.Sprintf("%s of zone %q", action, zone),
		func(ctx context.Context) error {
			if err := checkZone(zone); err != nil {
				return err
			}
			return method(ctx)
		})
}

// checkZone returns an error for an ID that would change the request path.
func checkZone(id provider.ZoneID) error {
	if !isPathSegment(string(id)) {
		return fmt.Errorf("%w: %q is not a zone ID", provider.ErrForbidden, id)
	}
	return nil
}

// Usage is documented at [provider.DNS].
func (d *DNS) Usage(ctx context.Context, zone provider.ZoneID) (usage provider.Usage, err error) {
	err = d.read(ctx, "read the usage", zone, func(ctx context.Context) error {
		var params dns.UsageZoneGetParams
		params.ZoneID.Value = string(zone)
		var got *dns.UsageZoneGetResponse
		err := d.send(ctx, idempotent, func(options ...option.RequestOption) (err error) {
			got, err = d.usage.Get(ctx, params, options...)
			return err
		})
		if err != nil {
			return err
		}
		if got.JSON.RecordUsage.IsMissing() {
			return unexpected("no number of records")
		}
		usage = provider.Usage{Records: int(got.RecordUsage), Quota: int(got.RecordQuota)}
		return nil
	})
	return usage, err
}

// CertificateHosts is documented at [provider.DNS].
func (d *DNS) CertificateHosts(ctx context.Context, zone provider.ZoneID) (hosts []string, err error) {
	type pack struct {
		ID     string   `json:"id"`
		Hosts  []string `json:"hosts"`
		Status string   `json:"status"`
	}
	err = d.read(ctx, "list the certificates", zone, func(ctx context.Context) error {
		var params ssl.CertificatePackListParams // the list contains only active packs by default
		params.ZoneID.Value = string(zone)
		params.PerPage.Value, params.PerPage.Present = 50, true // the API's maximum
		packs, err := listAll(ctx, d.send, "certificate packs", func(p pack) string { return p.ID },
			func(page float64, options ...option.RequestOption) error {
				params.Page.Value, params.Page.Present = page, true
				_, err := d.certificates.List(ctx, params, options...)
				return err
			})
		for _, p := range packs {
			if p.Status == "active" {
				hosts = append(hosts, p.Hosts...)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), nil
}
