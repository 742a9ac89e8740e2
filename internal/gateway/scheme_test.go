package gateway_test

import (
	"fmt"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// The same hostname has different answers for http and for https. Each case names the
// route rule that answers.
func TestTheSchemeDecidesTheAnswer(t *testing.T) {
	const none = "404"
	for _, c := range []struct {
		name    string
		plane   v1alpha1.DataPlane
		answers map[string]string // by URL
	}{
		{"both-protocols", v1alpha1.DataPlaneEnvoy, map[string]string{
			"http://shop.example.com/": "redirect 0", "https://shop.example.com/": "shop 0", "shop.example.com/": "shop 0",
			"http://shop.example.com/health": "health 0", "https://shop.example.com/health": "health 0",
			"http://other.example.com/": "redirect 0", "https://other.example.com/": none,
		}},
		{"both-protocols", v1alpha1.DataPlaneIngressRules, map[string]string{
			"http://shop.example.com/": "shop 0", "https://shop.example.com/": "shop 0", "https://shop.example.com/health": "health 0",
			"http://other.example.com/": none,
		}},
		{"https-alone", v1alpha1.DataPlaneEnvoy, map[string]string{
			"http://shop.example.com/": "redirect 0", "https://shop.example.com/": "shop 0", "http://shop.example.com/status": "redirect 0",
			"http://shop.example.com/pay": "redirect 0", "http://shop.example.com/login": "redirect 0",
			"http://app.example.net/": "redirect 0", "https://app.example.net/": "app 0",
			"http://own.example.org/": "app 0", "http://own.example.org/secure": "own-redirect 0", "https://own.example.org/secure": "app 0",
			"http://x.example.org/secure": "own-redirect 0", "https://x.example.org/secure": none,
			"http://other.example.com/status": "redirect 1", "https://other.example.com/status": "redirect 1", "https://other.example.com/": none,
		}},
		{"https-alone", v1alpha1.DataPlaneIngressRules, map[string]string{
			"http://shop.example.com/": "shop 0", "https://app.example.net/": "app 0", "http://other.example.com/status": "redirect 1", "http://other.example.com/": none,
		}},
		{"http-alone", v1alpha1.DataPlaneEnvoy, map[string]string{
			"http://shop.example.com/": "plain 0", "https://shop.example.com/": "plain 0", "https://shop.example.com/other": "plain 0",
			"http://shop.example.com/pay/card": "redirect 0", "https://shop.example.com/pay/card": "secure 0", "https://shop.example.com/pay": "redirect 0: status 404",
			"http://alone.example.net/pay": "redirect 0", "https://alone.example.net/pay": "plain 0", "http://alone.example.net/": "plain 0",
		}},
		{"redirect-of-https-listener", v1alpha1.DataPlaneEnvoy, map[string]string{
			"http://shop.example.com/a": "some-rules 1", "https://shop.example.com/a": "some-rules 1",
		}},
		{"unknown-order", v1alpha1.DataPlaneIngressRules, map[string]string{
			"https://shop.example.com/": "secure 0", "http://shop.example.com/": "secure 0", "https://shop.example.com/moved": "secure 0", "https://shop.example.com/plain": "plain 2",
		}},
	} {
		t.Run(c.name+" "+string(c.plane), func(t *testing.T) {
			result := decideFile(t, "testdata/scheme-"+c.name+".in.yaml", c.plane)[0].result
			for url, want := range c.answers {
				request, err := routing.ParseRequest(url)
				if err != nil {
					t.Fatal(err)
				}
				answer, _ := result.Table.Answer(request)
				got := none
				if answer != nil {
					got = describeRule(answer)
				}
				if got != want {
					t.Errorf("%s is answered by %s, want %s", url, got, want)
				}
			}
		})
	}
}

// describeRule returns the route name, the rule index, and the status if there is one.
func describeRule(e *routing.Entry) string {
	text := fmt.Sprintf("%s %d", e.Source.Route.Name, e.Source.Rule)
	if e.Action.Status != 0 {
		text += fmt.Sprintf(": status %d", e.Action.Status)
	}
	return text
}

func decideFile(t *testing.T, file string, plane v1alpha1.DataPlane) []decision {
	t.Helper()
	files, err := state.FromFiles([]string{file}, manifest.Options{Namespace: "default"}, options.ControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	return decide(t, files, plane)
}
