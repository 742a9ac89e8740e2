package convert_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/convert"
)

// soon fails the test if the function takes long.
func soon(t *testing.T, run func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the conversion does not end")
	}
}

// Each mapping merges the one before ten times. Without a limit, reading them would take 10^30
// steps.
func TestMergedMappingsAreReadOnce(t *testing.T) {
	var text strings.Builder
	text.WriteString("m0: &m0 {hostname: a.example.com}\n")
	for i := 1; i <= 30; i++ {
		fmt.Fprintf(&text, "m%d: &m%d {<<: [%s{<<: *m%d}]}\n", i, i, strings.Repeat(fmt.Sprintf("*m%d, {<<: *m%d}, ", i-1, i-1), 5), i-1)
	}
	text.WriteString("ingress:\n- {<<: *m30, service: http://web.shop.svc}\n- service: http_status:404\n")
	soon(t, func() {
		input := parse(t, text.String())
		if got := input.Rules[0].Hostname; got != "a.example.com" {
			t.Errorf("hostname %q", got)
		}
	})
}

func TestMappingsThatMergeThemselvesAreRejected(t *testing.T) {
	for _, text := range []string{
		"ingress:\n- &a {<<: *a, service: http_status:404}\n",
		"ingress:\n- &a {<<: [{<<: *a}], service: http_status:404}\n",
		"&a\n<<: *a\ningress: [{service: http_status:404}]\n",
	} {
		soon(t, func() {
			if _, err := convert.Parse("config.yml", []byte(text)); err == nil || !strings.Contains(err.Error(), "merges itself") {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
}

// A key can be an alias too.
func TestKeysCanBeAliases(t *testing.T) {
	input := parse(t, "no-autoupdate: &service path\ningress:\n- {*service : ^/a, service: http://web.shop.svc}\n- service: http_status:404\n")
	if got := input.Rules[0]; got.Path != "^/a" || got.Service != "http://web.shop.svc" {
		t.Errorf("rule %+v", got)
	}
}

// cloudflared reads a remote configuration with encoding/json, which ignores the letter case of
// keys. A protected hostname must not become open because of it.
func TestRemoteKeysIgnoreTheLetterCase(t *testing.T) {
	input, err := convert.ParseRemote("tunnel", []byte(`{"Ingress":[
		{"Hostname":"a.example.com","service":"http://web.shop.svc","originrequest":{"Access":{"Required":true,"TeamName":"team","audtag":["one"]},"noTLSverify":true}},
		{"service":"http_status:404"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	text := complete(t, input, options)
	for _, want := range []string{"required: true", "teamName: team", "- one", "noTLSVerify: true"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// People copy the commands in notes.
func TestCommandsInNotesQuoteTexts(t *testing.T) {
	o := options
	o.DataPlane = v1alpha1.DataPlaneEnvoy
	input := parse(t, "ingress:\n- {service: 'https://web.shop.svc', hostname: a.example.com, originRequest: {caPool: '/ca.pem; touch $(id) it''s'}}\n- service: http_status:404\n")
	if text, want := complete(t, input, o), `--from-file='ca.crt=/ca.pem; touch $(id) it'\''s'`; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// A service can contain a password.
func TestErrorsContainNoPassword(t *testing.T) {
	for _, service := range []string{"http://u:s3cret@", "http://u:s3cret@web/path", "http://u:s3cret@web:port", "//u:s3cret@web", "http://u:s3cret%zz@web"} {
		_, err := convert.Parse("config.yml", []byte("ingress:\n- service: "+service+"\n"))
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", service, err)
		}
	}
	input := parse(t, "ingress:\n- {hostname: a.example.com, service: 'ssh://u:s3cret@web:22'}\n- {hostname: b.example.com, service: 'http://u:s3cret@web.shop.svc'}\n- service: http_status:404\n")
	if text := complete(t, input, options); strings.Contains(text, "s3cret") {
		t.Errorf("the output contains the password:\n%s", text)
	}
}

// The names of routes that were divided must not be the names of other routes.
func TestNamesAreUnique(t *testing.T) {
	var text strings.Builder
	text.WriteString("ingress:\n")
	for i := range 20 {
		fmt.Fprintf(&text, "- {hostname: a.example, path: '^/%d$', service: 'http://web.shop.svc'}\n", i)
	}
	text.WriteString("- {hostname: a.example.com, service: 'http://web.shop.svc', originRequest: {connectTimeout: 3s}}\n- {hostname: a.example-01, service: 'http://private.shop.svc', originRequest: {access: {required: true, teamName: team, audTag: [one]}}}\n")
	text.WriteString("- {hostname: b.example, path: /x, service: 'http://web.shop.svc'}\n- {hostname: b.example, service: 'http://web.shop.svc', originRequest: {connectTimeout: 3s}}\n- {hostname: b.example-p8443, service: 'http://web.shop.svc'}\n- service: http_status:404\n")
	result := convert.Convert(parse(t, text.String()), options)
	names := map[string]bool{}
	for _, d := range result.Documents {
		name := fmt.Sprintf("%T %s/%s", d.Object, d.Object.GetNamespace(), d.Object.GetName())
		if names[name] {
			t.Errorf("%s is there twice", name)
		}
		names[name] = true
	}
	if err := result.Verify(t.Context(), options); err != nil {
		t.Error(err)
	}
	for _, n := range result.Notes {
		if n.Kind == convert.NoteDifferent {
			t.Error(n)
		}
	}
}

// Many rules for every hostname and many hostnames.
func TestManyRulesAreConvertedSoon(t *testing.T) {
	var text strings.Builder
	text.WriteString("ingress:\n")
	for i := range 250 {
		fmt.Fprintf(&text, "- {path: '^/p%d$', service: 'http://web.shop.svc'}\n", i)
	}
	for i := range 250 {
		fmt.Fprintf(&text, "- {hostname: h%d.example.com, service: 'http://web.shop.svc'}\n", i)
	}
	text.WriteString("- service: http_status:404\n")
	soon(t, func() { convert.Convert(parse(t, text.String()), options) })
}

// With cloudflared, the first rule also closes /admin%2Fx. Envoy passes it to the backend.
func TestNotesTellThatEnvoyDoesNotDecodePaths(t *testing.T) {
	input := parse(t, "ingress:\n- {path: ^/admin/, service: 'http_status:403'}\n- {hostname: a.example.com, path: ^/b, service: 'http://web.shop.svc'}\n- service: http://web.shop.svc\n")
	o := options
	for plane, want := range map[v1alpha1.DataPlane]int{v1alpha1.DataPlaneIngressRules: 0, v1alpha1.DataPlaneEnvoy: 1} {
		o.DataPlane = plane
		if text := complete(t, input, o); strings.Count(text, "# step: config.yml:2: ingress[0].path: Envoy does not decode") != want {
			t.Errorf("%s: %s", plane, text)
		}
	}
}
