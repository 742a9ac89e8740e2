package cloudflare

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// recordView is a record in the API's response.
type recordView struct {
	ID         provider.RecordID `json:"id"`
	Name       string            `json:"name"`
	Type       string            `json:"type"`
	Content    string            `json:"content"`
	Proxied    bool              `json:"proxied"`
	TTL        int               `json:"ttl"`
	Comment    string            `json:"comment"` // null without a comment
	ModifiedOn time.Time         `json:"modified_on"`
}

// asRecords converts records, or returns an error if the response is unexpected.
func asRecords(views []recordView) ([]provider.Record, error) {
	var all []provider.Record
	for _, v := range views {
		if v.ID == "" || v.Name == "" || v.Type == "" {
			return nil, unexpected("a record without an ID, name or type")
		}
		all = append(all, provider.Record{
			ID: v.ID, Name: v.Name, Type: v.Type, Content: v.Content, Proxied: v.Proxied, TTL: v.TTL,
			Comment: v.Comment, ModifiedAt: v.ModifiedOn,
		})
	}
	return all, nil
}

// Records is documented at [provider.DNS].
func (d *DNS) Records(ctx context.Context, zone provider.ZoneID, names ...string) (records []provider.Record, err error) {
	err = d.read(ctx, "list the records", zone, func(ctx context.Context) error {
		if len(names) > provider.MaxNames {
			return fmt.Errorf("one call can read %d names", provider.MaxNames)
		}
		views, err := d.listRecords(ctx, zone, names)
		if err != nil {
			return err
		}
		records, err = asRecords(views)
		return err
	})
	return records, err
}

func (d *DNS) listRecords(ctx context.Context, zone provider.ZoneID, names []string) ([]recordView, error) {
	if len(names) == 0 {
		return d.recordsNamed(ctx, zone, "")
	}
	var all []recordView
	listed := map[string]bool{}
	for _, name := range names {
		if listed[name] {
			continue
		}
		listed[name] = true
		views, err := d.recordsNamed(ctx, zone, name)
		if err != nil {
			return nil, err
		}
		all = append(all, views...)
	}
	return all, nil
}

// recordsNamed returns the records with exactly this name, or all records if it is empty.
func (d *DNS) recordsNamed(ctx context.Context, zone provider.ZoneID, name string) ([]recordView, error) {
	var params dns.RecordListParams
	params.ZoneID.Value = string(zone)
	params.Name.Value.Exact.Value, params.Name.Value.Exact.Present = name, true
	params.Name.Present = name != ""
	params.PerPage.Value, params.PerPage.Present = float64(d.recordsPerPage), true
	// By default, the API sorts by type, which would leave the order on the pages open.
	params.Order.Value, params.Order.Present = dns.RecordListParamsOrderName, true
	return listAll(ctx, d.send, "records", func(r recordView) string { return string(r.ID) },
		func(page float64, options ...option.RequestOption) error {
			params.Page.Value, params.Page.Present = page, true
			_, err := d.records.List(ctx, params, options...)
			return err
		})
}
