package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAConfigurationOfCloudflaredIsRecognized(t *testing.T) {
	const convert = "in.yaml: document 1: this is a cloudflared configuration, not a manifest; convert it with: kubectl tunnel-gateway convert -f in.yaml"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"complete":      {"tunnel: 6ff42ae2\ncredentials-file: /root/a.json\ningress:\n- hostname: a.example.com\n  service: http://web:80\n- service: http_status:404\n", []string{convert}},
		"only rules":    {"ingress: [{service: http_status:404}]", []string{convert}},
		"only a tunnel": {"tunnel: a\nurl: http://localhost:8000\n", []string{convert}},
		"warp-routing":  {"warp-routing: {enabled: true}\ncredentials-file: a.json\n", []string{convert}},
		"values of a chart": {"ingress: {enabled: true}\n", []string{
			"in.yaml: document 1: apiVersion: Required value", "in.yaml: document 1: kind: Required value",
		}},
		"rules without services": {"ingress: [{from: []}]\n", []string{
			"in.yaml: document 1: apiVersion: Required value", "in.yaml: document 1: kind: Required value",
		}},
		"a manifest without a kind": {"apiVersion: v1\ningress: [{service: a}]\n", []string{"in.yaml: document 1: kind: Required value"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseErrors(t, test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAConfigurationFromStandardInputIsConvertedFromThere(t *testing.T) {
	_, err := Read([]string{"-"}, Options{Stdin: strings.NewReader("tunnel: a\ningress: []\n")})
	if want := "stdin: document 1: this is a cloudflared configuration, not a manifest; convert it with: kubectl tunnel-gateway convert -f -"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
}
