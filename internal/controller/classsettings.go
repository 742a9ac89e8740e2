package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// classWith is a GatewayClass with its settings for zones or for applications.
type classWith[S any] struct {
	name     string
	created  time.Time
	settings S
	// sources are where the API tokens come from, and their account.
	sources tokenSources
}

// classSettings reads the settings of the GatewayClasses for zones or for applications.
type classSettings[S any] struct {
	reader         client.Reader
	controllerName gatewayv1.GatewayController
	namespace      string
	account        credentials.Default
	// settings returns the settings of a class, and false if they are not valid.
	settings func(settings.Input) (S, bool)
	// token returns the source of the API token in the settings, and whether they have one.
	token func(account credentials.Source, s S, namespace string) (credentials.Source, bool)

	// refreshing ensures that an older list of GatewayClasses does not replace a newer one.
	refreshing sync.Mutex
	last       map[string]classWith[S]
}

func newClassSettings[S any](d dependencies, o Options, read func(settings.Input) (S, bool), token func(credentials.Source, S, string) (credentials.Source, bool)) *classSettings[S] {
	return &classSettings[S]{
		reader: d.client, controllerName: o.ControllerName, namespace: o.Namespace, account: o.Account, settings: read, token: token,
	}
}

// refresh reads the GatewayClasses, and passes them to list, in order of their age. A
// GatewayClass that is not valid keeps the settings that it had, as far as this process
// knows: its Gateways are not accepted, so nothing is created or removed for them. If it had
// none, it is missing.
func (c *classSettings[S]) refresh(ctx context.Context, list func([]classWith[S])) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	var found gatewayv1.GatewayClassList
	if err := c.reader.List(ctx, &found, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the GatewayClasses: %w", err)
	}
	classes := map[string]classWith[S]{}
	for i := range found.Items {
		if found.Items[i].Spec.ControllerName != c.controllerName {
			continue
		}
		class, valid, err := c.read(ctx, &found.Items[i])
		if err != nil {
			return err
		}
		if !valid {
			class, valid = c.last[found.Items[i].Name], c.last[found.Items[i].Name].name != ""
		}
		if valid {
			classes[class.name] = class
		}
	}
	c.last = classes
	var all []classWith[S]
	for _, class := range classes {
		all = append(all, class)
	}
	slices.SortFunc(all, func(a, b classWith[S]) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	list(all)
	return nil
}

// read returns the settings of the GatewayClass. It returns false if they are not valid.
func (c *classSettings[S]) read(ctx context.Context, class *gatewayv1.GatewayClass) (classWith[S], bool, error) {
	configuration, err := state.ClassConfiguration(ctx, c.reader, class)
	if err != nil {
		return classWith[S]{}, false, err
	}
	set, valid := c.settings(settings.Input{Class: class, ClassConfiguration: configuration, ControllerNamespace: c.namespace})
	if !valid {
		return classWith[S]{}, false, nil
	}
	merged := &settings.Settings{}
	if configuration != nil {
		merged.Spec, merged.AccountNamespace = configuration.Spec, configuration.Namespace
	}
	found := classWith[S]{name: class.Name, created: class.CreationTimestamp.Time, settings: set}
	found.sources.account = c.account.ForSettings(merged)
	if own, separate := c.token(found.sources.account, set, c.namespace); separate {
		found.sources.own = own
	}
	return found, true, nil
}
