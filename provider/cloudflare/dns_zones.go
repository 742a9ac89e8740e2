package cloudflare

import (
	"context"
	"fmt"
	"strings"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zones"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// zoneView is a zone in the API's response.
type zoneView struct {
	ID      provider.ZoneID `json:"id"`
	Name    string          `json:"name"`
	Status  string          `json:"status"`
	Type    string          `json:"type"`
	Account struct {
		ID string `json:"id"`
	} `json:"account"`
}

// Zones is documented at [provider.DNS].
func (d *DNS) Zones(ctx context.Context, name string, id provider.ZoneID) (found []provider.Zone, err error) {
	action := fmt.Sprintf("find zone %q", name)
	err = run(provider.WithPriority(ctx, provider.PriorityDNS), action, func(ctx context.Context) error {
		views, err := d.findZones(ctx, name, id)
		for _, z := range views {
			if z.ID == "" || z.Account.ID == "" || z.Status == "" {
				return unexpected("a zone without an ID, account or status")
			}
			if strings.EqualFold(z.Name, name) {
				found = append(found, provider.Zone{
					ID: z.ID, Name: z.Name, AccountID: z.Account.ID, Status: z.Status, Type: z.Type,
				})
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (d *DNS) findZones(ctx context.Context, name string, id provider.ZoneID) ([]zoneView, error) {
	if id == "" {
		return d.zonesByName(ctx, name)
	}
	if err := checkZone(id); err != nil {
		return nil, err
	}
	var params zones.ZoneGetParams
	params.ZoneID.Value = string(id)
	var response struct {
		Result zoneView `json:"result"`
	}
	err := d.send(ctx, idempotent, func(options ...option.RequestOption) error {
		_, err := d.zones.Get(ctx, params, append(options, option.WithResponseBodyInto(&response))...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []zoneView{response.Result}, nil
}

func (d *DNS) zonesByName(ctx context.Context, name string) ([]zoneView, error) {
	var params zones.ZoneListParams
	params.Name.Value, params.Name.Present = name, true
	params.PerPage.Value, params.PerPage.Present = 50, true // the API's maximum
	return listAll(ctx, d.send, "zones", func(z zoneView) string { return string(z.ID) },
		func(page float64, options ...option.RequestOption) error {
			params.Page.Value, params.Page.Present = page, true
			_, err := d.zones.List(ctx, params, options...)
			return err
		})
}
