package cloudflare

import (
	"context"
	"fmt"

	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zones"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var _ provider.ZoneSettings = (*DNS)(nil)

// Settings is documented at [provider.ZoneSettings].
func (d *DNS) Settings(ctx context.Context, zone provider.ZoneID, names ...string) (values map[string]string, err error) {
	err = d.read(ctx, "read the settings", zone, func(ctx context.Context) error {
		if len(names) > provider.MaxNames {
			return fmt.Errorf("one call can read %d settings", provider.MaxNames)
		}
		read := map[string]string{}
		for _, name := range names {
			value, err := d.setting(ctx, zone, name)
			if err != nil {
				return err
			}
			read[name] = value
		}
		values = read
		return nil
	})
	return values, err
}

// setting returns the value of one setting. The client's type for the response is a union of
// all settings, of which the values are not comparable.
func (d *DNS) setting(ctx context.Context, zone provider.ZoneID, name string) (string, error) {
	if !isPathSegment(name) {
		return "", fmt.Errorf("%q is not the name of a setting", name)
	}
	var params zones.SettingGetParams
	params.ZoneID.Value = string(zone)
	var response struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
	}
	err := d.send(ctx, idempotent, func(options ...option.RequestOption) error {
		_, err := d.settings.Get(ctx, name, params, append(options, option.WithResponseBodyInto(&response))...)
		return err
	})
	if err != nil {
		return "", err
	}
	value, ok := response.Result.Value.(string)
	if !ok {
		return "", unexpected("no text as the value of setting " + name)
	}
	return value, nil
}
