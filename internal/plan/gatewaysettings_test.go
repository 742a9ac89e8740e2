package plan_test

import (
	"strings"
	"testing"
)

func TestTableShowsTheMergedSettings(t *testing.T) {
	for spec, want := range map[string]string{
		"{}": "replicas 2, protocol auto, Access required for * (team example)",
		"{connector: {replicas: 5, protocol: quic}}":                   "replicas 5, protocol quic, Access required for * (team example)",
		"{connector: {autoscaling: {minReplicas: 3, maxReplicas: 7}}}": "replicas 3 to 7, protocol auto, Access required for * (team example)",
		"{connector: {enabled: false}}":                                "no replicas (connector.enabled is false), protocol auto, Access required for * (team example)",
		`{listenerConfigurations: [{protocolPort: "HTTP:80", hostname: a.example.com, access: {required: true, teamName: other, audTags: [t]}}]}`: "replicas 2, protocol auto, Access required for a.example.com (team other), * (team example)",
	} {
		class := strings.Replace(classSettings, "spec: {originRequest: {connectTimeout: 1m}}", "spec: "+spec, 1)
		if got := printed(t, planOf(t, configuredClass, class)); !strings.Contains(got, "\nSettings: "+want+"\n") {
			t.Errorf("the table does not contain %q:\n%s", want, got)
		}
	}
	withoutAccess := strings.ReplaceAll(configuredClass, "required: true", "required: false")
	if got := printed(t, planOf(t, withoutAccess, classSettings)); !strings.Contains(got, "Access not required\n") {
		t.Errorf("the table requires Access:\n%s", got)
	}
}
