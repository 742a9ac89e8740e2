package docs

import (
	"slices"
	"strings"
	"testing"
)

func TestCommandsOnThePagesAreValid(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		sessions := slices.DeleteFunc(page.Blocks(""), func(block string) bool { return !strings.HasPrefix(block, "$ ") })
		for _, block := range append(sessions, page.Blocks("console")...) {
			t.Errorf("%s: put the command into a sh block, and its output into a text block:\n%s", page.Path, block)
		}
		functions := map[string]bool{}
		for _, block := range page.Blocks("sh") {
			commands, err := Commands(block, functions)
			if err != nil {
				t.Errorf("%s: %v in\n%s", page.Path, err, block)
			}
			for _, words := range commands {
				if err := Check(words); err != nil {
					t.Errorf("%s: %v", page.Path, err)
				}
				checked++
			}
		}
	}
	if checked < 50 {
		t.Errorf("found only %d commands", checked)
	}
}

func TestCheckFindsInvalidCommands(t *testing.T) {
	for block, want := range map[string]bool{
		"make build":                                                        true,
		"make biuld":                                                        false,
		"make test TEST=./internal/gateway":                                 true,
		"make test TSET=./internal/gateway":                                 false,
		"kubectl apply -f config/samples --server-side":                     true,
		"kubectl apply -f config/sample":                                    false,
		"kubectl aply -f config/samples":                                    false,
		"kubectl get gateway -n <namespace> <name> --wach":                  false,
		"kubectl get gateway -o yaml | tunnel-gateway plan -f -":            true,
		"kubectl get gateway -o yaml | tunnel-gateway plan --file -":        false,
		"tunnel-gateway paln -f config/samples":                             false,
		"kubectl tunnel_gateway plan -f config/samples":                     true,
		"tunnel-gateway plan -f config/samples --why a.example.com":         true,
		"tunnel-gateway plan -f config/samples --why *.example.com":         false,
		"tunnel-gateway plan -f charts/tunnel-gateway/values.yaml":          false,
		"kubectl tunnel_gateway plan --nope":                                false,
		"kubectl tunnel-gateway pause infra/shared":                         true,
		"kubectl tunnel-gateway pause infra/shared --nope":                  false,
		"helm install x charts/tunnel-gateway --set cloudflare.accountID=a": true,
		"helm install x charts/tunnel-gateway --set cloudflare.account=a":   false,
		"helm upgrade x charts/tunnel-gateway --wait-for-it":                false,
		"go test ./internal/gateway/...":                                    true,
		"go test ./internal/gatway":                                         false,
		"export A=b":                                                        true,
		"kubeclt get gateways":                                              false,
		"b() { make build; }; b":                                            true,
		"b() { make biuld; }; b":                                            false,
		"for x in a; do make biuld; done":                                   false,
		"echo $(make biuld)":                                                false,
	} {
		commands, err := Commands(block, map[string]bool{})
		for _, words := range commands {
			if err == nil {
				err = Check(words)
			}
		}
		if (err == nil) != want {
			t.Errorf("%q: got error %v, want valid: %t", block, err, want)
		}
	}
	if _, err := Commands("if true; then", nil); err == nil {
		t.Error("Commands did not fail for an incomplete command")
	}
}
