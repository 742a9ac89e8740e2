package cloudflare

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// batchBody is the body of a request with a batch. The client's types cannot express a
// patch of some fields: they require all.
type batchBody struct {
	Deletes []fields `json:"deletes,omitempty"`
	Patches []fields `json:"patches,omitempty"`
	Puts    []fields `json:"puts,omitempty"`
	Posts   []fields `json:"posts,omitempty"`
}

// fields are the fields of a record in a request. A field without a value is omitted.
type fields struct {
	ID      provider.RecordID `json:"id,omitempty"`
	Name    string            `json:"name,omitempty"`
	Type    string            `json:"type,omitempty"`
	Content *string           `json:"content,omitempty"`
	Proxied bool              `json:"proxied,omitempty"`
	TTL     int               `json:"ttl,omitempty"`
	Comment *string           `json:"comment,omitempty"`
}

func encodeBatch(b provider.Batch) ([]byte, error) {
	var body batchBody
	for _, id := range b.Deletes {
		body.Deletes = append(body.Deletes, fields{ID: id})
	}
	for _, p := range b.Patches {
		f := fields{ID: p.ID, Content: p.Target, Comment: p.Comment, Proxied: p.Proxy}
		if p.Proxy {
			f.TTL = provider.AutomaticTTL
		}
		body.Patches = append(body.Patches, f)
	}
	for _, p := range b.Puts {
		body.Puts = append(body.Puts, fieldsOf(p.ID, p.CNAME))
	}
	for _, c := range b.Creates {
		body.Posts = append(body.Posts, fieldsOf("", c))
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode batch: %w", err)
	}
	return encoded, nil
}

func fieldsOf(id provider.RecordID, c provider.CNAME) fields {
	return fields{
		ID: id, Name: c.Name, Type: "CNAME", Content: &c.Target, Proxied: true, TTL: provider.AutomaticTTL,
		Comment: &c.Comment,
	}
}

// Apply is documented at [provider.DNS].
func (d *DNS) Apply(ctx context.Context, zone provider.ZoneID, batch provider.Batch) (changed []provider.Record, err error) {
	count := batch.Operations()
	if count == 0 {
		return nil, ctx.Err()
	}
	action := fmt.Sprintf("apply %d changes to zone %q", count, zone)
	err = run(provider.WithPriority(ctx, provider.PriorityDNS), action, func(ctx context.Context) error {
		if count > provider.MaxBatch {
			return fmt.Errorf("a batch can contain %d changes", provider.MaxBatch)
		}
		changed, err = d.apply(ctx, zone, batch)
		return err
	})
	return changed, err
}

func (d *DNS) apply(ctx context.Context, zone provider.ZoneID, batch provider.Batch) ([]provider.Record, error) {
	if err := checkZone(zone); err != nil {
		return nil, err
	}
	body, err := encodeBatch(batch)
	if err != nil {
		return nil, err
	}
	var params dns.RecordBatchParams
	params.ZoneID.Value = string(zone)
	var response struct {
		Result struct {
			Deletes, Patches, Puts, Posts []recordView
		} `json:"result"`
	}
	err = d.send(ctx, sendOnce, func(options ...option.RequestOption) error {
		options = append(options,
			option.WithRequestBody("application/json", body), option.WithResponseBodyInto(&response))
		_, err := d.records.Batch(ctx, params, options...)
		return err
	})
	if err != nil {
		return nil, err
	}
	result := response.Result
	if len(result.Deletes) != len(batch.Deletes) || len(result.Patches) != len(batch.Patches) ||
		len(result.Puts) != len(batch.Puts) || len(result.Posts) != len(batch.Creates) {
		return nil, unexpected("the batch's result does not contain all records")
	}
	return asRecords(slices.Concat(result.Patches, result.Puts, result.Posts))
}
