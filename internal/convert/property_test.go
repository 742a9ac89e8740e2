package convert_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/convert"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// options are the options in tests.
var options = convert.Options{
	GatewayNamespace: "infra", GatewayName: "converted", DefaultClass: "cloudflare-tunnel", ControllerName: "tunnelgateway.dev/controller",
	ControllerNamespace: "tunnel-gateway", Namespace: "apps", ClusterDomain: "cluster.local", ListenerSets: true, DataPlane: v1alpha1.DataPlaneIngressRules,
}

// The parts of random configurations. Wide and narrow hostnames overlap, and so do paths.
var (
	randomHostnames = []string{
		"", "*", "example.com", "a.example.com", "b.a.example.com", "*.example.com", "*.a.example.com", "*.com", "c.example.com", "Upper.example.com", "bücher.example.com", "*.Upper.com", "*foo.com", "a_b.example.com",
	}
	randomPaths = []string{
		"", "", "", "/", "^/", ".*", "/*", "^/api", "^/api(/|$)", "^/api/(.*)", "^/api/v1(/|$)", "^/apiary$", "/api", "^/healthz$", "^/api$", `\.png$`, `(?i)\.PNG$`, `\.(png|jpg)$`,
		"^/a|/b$", "^/(a|b)(/|$)", "^/api/?$", "/v[0-9]+/", "a.b", "(?s)a.b", "(?m)^b", "(?m)a$", `^/x\+y$`, "^/ä(/|$)", "^/a b$", `\Q/a.b`, `/a.*b`, "^/api//x$", "/api.*", "^$", "[.*]", "^^/api", `\bapi\b`, `/\$`, `^/a\$`,
	}
	randomServices = []string{
		"http://web.shop.svc.cluster.local", "http://api.shop.svc:8080", "http://api.other.svc:8080", "https://tls.shop.svc.cluster.local:8443", "https://tls.shop.svc:8443", "ws://socket:90", "http://local.apps",
		"http_status:404", "http_status:404", "http_status:410", "http_status:500", "ssh://host.shop.svc:22", "unix:/run/x.sock", "hello_world", "http://localhost:8080", "http://10.0.0.1", "https://www.example.org", "bastion",
	}
	randomOrigins = []string{
		"", "", "", "", "", "{connectTimeout: 3s}", "{noTLSVerify: true}", "{httpHostHeader: internal.example.com}", "{originServerName: other.example.com}", "{http2Origin: true}", "{matchSNItoHost: true}",
		"{connectTimeout: 30s, keepAliveConnections: 7}", "{tlsTimeout: 1500ms}", "{bastionMode: true}", "{caPool: /etc/ca.pem}", "{http2Origin: true, matchSNItoHost: true}",
		"{access: {required: true, teamName: team, audTag: [one]}}", "{access: {required: true, teamName: team, audTag: [two, one]}}", "{access: {required: false}}", "{access: {required: true}}",
		"{noTLSVerify: false}", `{httpHostHeader: ""}`, "{connectTimeout: 3s, access: {required: true, teamName: team, audTag: [one]}}",
	}
	topOrigins = []string{"{}", "{}", "{connectTimeout: 5s}", "{http2Origin: true}", "{matchSNItoHost: true}", "{noTLSVerify: true, httpHostHeader: top.example.com}", "{access: {required: true, teamName: top, audTag: [top]}}"}
)

// random returns the same numbers for the same seed.
func random(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // a test needs no secure numbers
}

func pick(r *rand.Rand, values []string) string { return values[r.IntN(len(values))] }

// randomConfiguration returns the text of a configuration that cloudflared accepts.
func randomConfiguration(r *rand.Rand) string {
	var text strings.Builder
	fmt.Fprintf(&text, "originRequest: %s\ningress:\n", pick(r, topOrigins))
	for range r.IntN(8) {
		hostname, path := pick(r, randomHostnames), pick(r, randomPaths)
		if (hostname == "" || hostname == "*") && path == "" {
			continue
		}
		fmt.Fprintf(&text, "- hostname: %q\n  path: %s\n  service: %s\n", hostname, strconv.QuoteToASCII(path), pick(r, randomServices))
		if origin := pick(r, randomOrigins); origin != "" {
			fmt.Fprintf(&text, "  originRequest: %s\n", origin)
		}
	}
	fmt.Fprintf(&text, "- service: %s\n", pick(r, randomServices))
	return text.String()
}

// randomRequests returns requests for hosts and paths that are not derived from the rules.
func randomRequests(r *rand.Rand) []convert.Request {
	hosts := []string{"example.com", "a.example.com", "x.a.example.com", "b.a.example.com", "x.example.com", "c.example.com", "upper.example.com", "xn--bcher-kva.example.com", "other.org", "x.com", "Upper.com", "x.foo.com"}
	pieces := []string{"/", "api", "/api", "apiary", ".png", "a", "b", ".", "\n", "healthz", "v1", "v2", "/x+y", "ä", " ", "$", "*", "//"}
	var requests []convert.Request
	for range 60 {
		path := "/"
		for range r.IntN(5) {
			path += pick(r, pieces)
		}
		requests = append(requests, convert.Request{Host: pick(r, hosts), Path: path})
	}
	return requests
}

func parse(t *testing.T, text string) *convert.Configuration {
	t.Helper()
	input, err := convert.Parse("config.yml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return input
}

// The converted objects answer every request as cloudflared answers it with the
// configuration, unless a note says otherwise.
func TestConvertedConfigurationsAnswerLikeTheOriginal(t *testing.T) {
	noted, compared := 0, 0
	for seed := range uint64(120) {
		r := random(seed, 1)
		text := randomConfiguration(r)
		input := parse(t, text)
		o := options
		o.ListenerSets = seed%3 != 0
		comparison, err := convert.Compare(t.Context(), input, convert.Convert(input, o), o, append(input.Requests(), randomRequests(r)...))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		compared += comparison.Requests
		noted += len(comparison.Differences)
		for _, d := range unexpected(comparison) {
			t.Errorf("seed %d: %q: rule %d answered %q, now %q", seed, d.Request, d.Rule, d.Before, d.After)
		}
		for _, d := range comparison.Differences {
			if !strings.ContainsAny(d.Request.Host, "_*") && !closes(d) { // such a host can have no listener
				t.Errorf("seed %d: %q: rule %d answered %q, and %q is neither an error nor the same backend with the same access", seed, d.Request, d.Rule, d.Before, d.After)
			}
		}
		for _, problem := range comparison.Problems {
			t.Errorf("seed %d: %s", seed, problem)
		}
		if t.Failed() {
			t.Fatal(text)
		}
	}
	t.Logf("%d requests, %d differences with a note", compared, noted)
	if compared-noted < compared/3 {
		t.Errorf("the notes explain %d of %d requests, so the property says little", noted, compared)
	}
}

// closes reports whether the answer after is an error, or the backend before with at least
// the access before.
func closes(d convert.Difference) bool {
	if d.After == "http_status:404" || d.After == "http_status:500" {
		return true
	}
	backend, _, _ := strings.Cut(d.Before, " ")
	_, access, requires := strings.Cut(d.Before, " access=")
	return strings.HasPrefix(d.After, backend) && (!requires || strings.HasSuffix(d.After, " access="+access))
}

// remote returns the rules in the form of the API.
func remote(t *testing.T, input *convert.Configuration) []byte {
	t.Helper()
	var c struct {
		Ingress []map[string]string `json:"ingress"`
	}
	for _, r := range input.Rules {
		c.Ingress = append(c.Ingress, map[string]string{"hostname": r.Hostname, "path": r.Path, "service": r.Service})
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The matcher agrees with the simulator, which has its own. The simulator does not know
// the second form of a hostname, which only differs for letters that are not a-z.
func TestMatcherAgreesWithTheSimulator(t *testing.T) {
	plain := regexp.MustCompile(`^[a-z0-9.*]*$`)
	for seed := range uint64(100) {
		r := random(seed, 2)
		input := parse(t, randomConfiguration(r))
		for i := range input.Rules {
			if !plain.MatchString(input.Rules[i].Hostname) {
				input.Rules[i].Hostname = "plain.example.com"
			}
		}
		rules, err := simulator.Compile(remote(t, input))
		if err != nil {
			t.Fatal(err)
		}
		matcher, err := convert.NewMatcher(input.Rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, request := range append(input.Requests(), randomRequests(r)...) {
			if want, _, _ := rules.Match(request.Host+":443", request.Path); matcher.Match(request.Host+":443", request.Path) != want {
				t.Errorf("seed %d: %q: the matcher chooses rule %d, the simulator rule %d", seed, request, matcher.Match(request.Host, request.Path), want)
			}
		}
	}
}

var matchedRule = regexp.MustCompile(`Matched rule #(\d+)`)

// The matcher agrees with cloudflared, whose binary the variable CLOUDFLARED names.
func TestMatcherAgreesWithCloudflared(t *testing.T) {
	binary := os.Getenv("CLOUDFLARED")
	if binary == "" {
		t.Skip("CLOUDFLARED does not name a binary of cloudflared")
	}
	for seed := range uint64(25) {
		r := random(seed, 3)
		text := randomConfiguration(r)
		input := parse(t, text)
		file := filepath.Join(t.TempDir(), "config.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		matcher, err := convert.NewMatcher(input.Rules)
		if err != nil {
			t.Fatal(err)
		}
		requests := append(input.Requests(), randomRequests(r)...)
		for range 12 {
			request := requests[r.IntN(len(requests))]
			out, err := exec.CommandContext(t.Context(), binary, "tunnel", "--config", file, "ingress", "rule", "https://"+request.String()).CombinedOutput() //nolint:gosec // the variable names the program to run
			found := matchedRule.FindSubmatch(out)
			if err != nil || found == nil {
				t.Fatalf("seed %d: %q: %v: %s\n%s", seed, request, err, out, text)
			}
			if want, _ := strconv.Atoi(string(found[1])); matcher.Match(request.Host, request.Path) != want {
				t.Errorf("seed %d: %q: the matcher chooses rule %d, cloudflared rule %d\n%s", seed, request, matcher.Match(request.Host, request.Path), want, text)
			}
		}
	}
}
