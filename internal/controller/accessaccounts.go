package controller

import (
	"context"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// accountKey identifies a Cloudflare account by its ID.
type accountKey struct{ id string }

func (k accountKey) logValues() []any { return []any{"account", k.id} }

// accessClass is a GatewayClass with its settings for applications.
type accessClass = classWith[settings.Applications]

// accessAccount is what the process remembers about an account. It has no classes if no class
// manages applications.
type accessAccount = registered[settings.Applications, access.Report, access.Memory, provider.Access]

// accessAccounts contains the accounts whose applications a GatewayClass manages.
type accessAccounts struct {
	registry[accountKey, settings.Applications, access.Report, access.Memory, provider.Access]
}

func newAccessAccounts(classes *classSettings[settings.Applications]) *accessAccounts {
	a := &accessAccounts{}
	a.classes, a.byKey = classes, map[accountKey]*accessAccount{}
	return a
}

// refresh reads the GatewayClasses, and returns the accounts whose settings have changed.
func (a *accessAccounts) refresh(ctx context.Context) ([]accountKey, error) {
	return a.refreshWith(ctx, classesByAccount)
}

// classesByAccount returns the classes, which are in order, by the account whose applications
// one of them manages.
func classesByAccount(classes []accessClass) map[accountKey][]accessClass {
	listed := map[accountKey][]accessClass{}
	for _, class := range classes {
		if key := (accountKey{class.sources.account.Account}); key.id != "" {
			listed[key] = append(listed[key], class)
		}
	}
	for key, all := range listed {
		if !slices.ContainsFunc(all, managesApplications) {
			delete(listed, key)
		}
	}
	return listed
}

func managesApplications(class accessClass) bool { return class.settings.AreManaged() }

// tokensOf returns where the API tokens of an account come from: the settings of its oldest
// class that manages applications.
func tokensOf(classes []accessClass) tokenSources {
	return classes[max(0, slices.IndexFunc(classes, managesApplications))].sources
}

// managed returns the accounts whose applications are managed: the one with the ID, or all
// without an ID.
func (a *accessAccounts) managed(id string) []accountKey {
	return a.keys(func(key accountKey, _ *accessAccount) bool { return id == "" || key.id == id })
}
