package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

func TestSettingsForApplicationsHaveDefaults(t *testing.T) {
	defaults := settings.Applications{
		Mode: v1alpha1.ApplicationsDisabled, Catalogue: map[v1alpha1.PolicyName]string{}, MaxApplications: 400, OpeningDelay: 30 * time.Second,
	}
	token := v1alpha1.SecretKeyReference{Name: "access-token"}
	for name, test := range map[string]struct {
		spec specOf
		want settings.Applications
	}{
		"no settings": {specOf{}, defaults},
		"every setting": {
			specOf{
				Hostnames: &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)},
				Access: &v1alpha1.AccessApplications{
					Applications: new(v1alpha1.ApplicationsManaged), TeamName: new("acme"), APIToken: &token,
					Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "1"}, {Name: "ci", ID: "2"}}, MaxApplications: new(int32(0)),
					OpeningDelay: new(v1alpha1.Duration("1m")),
				},
			},
			settings.Applications{
				Mode: v1alpha1.ApplicationsManaged, TeamName: "acme", Catalogue: map[v1alpha1.PolicyName]string{"employees": "1", "ci": "2"},
				OpeningDelay: time.Minute, APIToken: &token, RequiresPermission: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// An invalid Gateway does not hide the settings of the GatewayClass.
			for _, gateway := range []specOf{{}, {Access: &v1alpha1.AccessApplications{}}} {
				got, ok := settings.ClassApplications(inputOf(configuration("platform", "defaults", test.spec), configuration("infra", "own", gateway)))
				if diff := cmp.Diff(test.want, got); !ok || diff != "" {
					t.Errorf("valid: %t; the settings differ (-want +got):\n%s", ok, diff)
				}
			}
		})
	}
	var none *settings.Settings
	if diff := cmp.Diff(defaults, none.Applications()); diff != "" {
		t.Errorf("the settings differ without a configuration (-want +got):\n%s", diff)
	}
}

func TestInvalidSettingsForApplicationsAreRejected(t *testing.T) {
	for name, test := range map[string]struct {
		access  v1alpha1.AccessApplications
		message string
	}{
		"managed without a team":     {v1alpha1.AccessApplications{Applications: new(v1alpha1.ApplicationsManaged)}, "spec.access.teamName is not set"},
		"managed with an empty team": {v1alpha1.AccessApplications{Applications: new(v1alpha1.ApplicationsManaged), TeamName: new("")}, "spec.access.teamName is not set"},
		"a delay of zero":            {v1alpha1.AccessApplications{OpeningDelay: new(v1alpha1.Duration("0s"))}, "spec.access.openingDelay"},
		"a catalogue while disabled": {v1alpha1.AccessApplications{Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: "1"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(configuration("platform", "defaults", specOf{Access: &test.access}), configuration("infra", "own", specOf{}))
			wantInvalid(t, in, "GatewayClass tunnel is not accepted: TunnelConfiguration platform/defaults of spec.parametersRef is not valid: ", test.message)
			if a, ok := settings.ClassApplications(in); ok != (test.message == "") || a.AreManaged() {
				t.Errorf("got %+v, %t", a, ok)
			}
		})
	}
}

// Without permissions, the demands of tenants close their hostnames, which the platform team
// must know.
func TestSettingsWarnOfDemandsWithoutPermissions(t *testing.T) {
	for _, test := range []struct {
		settings settings.Applications
		warned   bool
	}{
		{settings.Applications{Mode: v1alpha1.ApplicationsManaged}, true},
		{settings.Applications{Mode: v1alpha1.ApplicationsManaged, RequiresPermission: true}, false},
		{settings.Applications{Mode: v1alpha1.ApplicationsDisabled}, false},
		{settings.Applications{}, false},
	} {
		if got := test.settings.Warning(); strings.Contains(got, "hostnames.from") != test.warned {
			t.Errorf("%+v: %q", test.settings, got)
		}
	}
}

func TestSessionDuration(t *testing.T) {
	for text, want := range map[v1alpha1.SessionDuration]time.Duration{
		"8h": 8 * time.Hour, "30m": 30 * time.Minute, "1h30m": 90 * time.Minute, "0m": settings.DefaultSessionDuration, "long": settings.DefaultSessionDuration,
	} {
		if got := settings.SessionDuration(&text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := settings.SessionDuration(nil); got != 24*time.Hour {
		t.Errorf("the default is %s", got)
	}
}
