package plan

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// annotationConstant matches where an annotation's name is declared.
var annotationConstant = regexp.MustCompile(`(?m)\b[A-Za-z]*Annotation\s*=\s*(?:v1alpha1\.GroupName \+ "|"tunnelgateway\.dev)(/[a-z-]+)"`)

func TestTheListHasEveryAnnotationOfTheCode(t *testing.T) {
	var declared, listed []string
	for _, dir := range []string{"../../api", "../../internal"} {
		files := os.DirFS(dir)
		err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			data, err := fs.ReadFile(files, name)
			for _, match := range annotationConstant.FindAllSubmatch(data, -1) {
				declared = append(declared, "tunnelgateway.dev"+string(match[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range annotations {
		listed = append(listed, a.name)
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Compact(declared), listed); diff != "" {
		t.Errorf("the list differs from the code (-code +list):\n%s", diff)
	}
}

func TestProblemsOfAnnotations(t *testing.T) {
	for annotation, want := range map[string]string{
		"Gateway tunnelgateway.dev/paused=true":                                                  "",
		"Gateway tunnelgateway.dev/paused=":                                                      `has no effect with the value ""; the value must be true or false`,
		"Gateway tunnelgateway.dev/paused=flase":                                                 `has no effect with the value "flase"; did you mean false?`,
		"GatewayClass tunnelgateway.dev/data-plane=Envoy":                                        "",
		"GatewayClass tunnelgateway.dev/data-plane=IngressRules":                                 "",
		"GatewayClass tunnelgateway.dev/data-plane=envoy":                                        `has no effect with the value "envoy"; did you mean Envoy?`,
		"GatewayClass tunnelgateway.dev/data-plane=":                                             `has no effect with the value ""; the value must be Envoy or IngressRules`,
		"Gateway tunnelgateway.dev/data-plane=Envoy":                                             "has no effect on kind Gateway; it belongs on kind GatewayClass",
		"Tunnel tunnelgateway.dev/reconcile=now":                                                 "",
		"Tunnel tunnelgateway.dev/reconcile=":                                                    `has no effect with the value ""; the value must not be empty`,
		"Tunnel tunnelgateway.dev/rotate-token=2026-11-22":                                       "",
		`Tunnel tunnelgateway.dev/adopt-records=[{"zone":"example.com","name":"a.example.com"}]`: "",
		"Tunnel tunnelgateway.dev/adopt-records=a.example.com":                                   `has no effect with the value "a.example.com"; the command dns adopt writes the value`,
		"Tunnel tunnelgateway.dev/rotatetoken=a":                                                 "does not exist; did you mean tunnelgateway.dev/rotate-token?",
		"Tunnel tunnelgateway.dev/recncile=a":                                                    "does not exist; did you mean tunnelgateway.dev/reconcile?",
		"Tunnel tunnelgateway.dev/paused=true":                                                   "has no effect on kind Tunnel; it belongs on kind Gateway",
		"Namespace tunnelgateway.dev/hostnames=":                                                 "",
		"Namespace tunnelgateway.dev/hostnames=*":                                                "",
		"Namespace tunnelgateway.dev/hostnames=a_b":                                              `has the entry "a_b", which permits nothing; use DNS names in lower case, wildcards such as *.example.com, or *`,
		"HTTPRoute tunnelgateway.dev/token-version=1":                                            "has no effect on kind HTTPRoute; it belongs on kind Pod",
		"HTTPRoute tunnelgateway.de/paused=true":                                                 "does not exist; did you mean tunnelgateway.dev/paused?",
		"HTTPRoute TunnelGateway.dev/paused=true":                                                "does not exist; did you mean tunnelgateway.dev/paused?",
		"HTTPRoute tunelgateway.dev/other=true":                                                  "", // possibly another project
		"HTTPRoute tunnelgateway.dev/other=true":                                                 "does not exist",
		"HTTPRoute tunnel.example.com/paused=true":                                               "",
		"HTTPRoute paused=true":                                                                  "",
		"HTTPRoute external-dns.alpha.kubernetes.io/x=true":                                      "",
		"Gateway tunnelgateway.dev/paused=" + longValue(200):                                     `has no effect with the value "` + longValue(80) + `"; the value must be true or false`,
	} {
		kind, rest, _ := strings.Cut(annotation, " ")
		name, value, _ := strings.Cut(rest, "=")
		if got := annotationProblem(kind, name, value); got != want {
			t.Errorf("%s: the problem is %q, want %q", annotation, got, want)
		}
	}
}

func longValue(length int) string { return strings.Repeat("x", length) }
