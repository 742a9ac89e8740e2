package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// control is text that clears the screen, sets colors and the terminal title, moves the
// cursor, reverses the text direction and forges a line.
const control = "\x1b[2J\x1b[31m\x1b]0;t\a\u009b2J\u202e\u2066\b\r\x7f\t\x00\nforged"

// colors removes the escape sequences that commands use for colors.
var colors = strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[36m", "", "\x1b[m", "")

// problemIn returns how the output controls the terminal, or "".
func problemIn(output string) string {
	for _, r := range output {
		if r != '\n' && !strconv.IsPrint(r) {
			return fmt.Sprintf("the output contains %q: %.2000q", r, output)
		}
	}
	for line := range strings.Lines(output) {
		if strings.HasPrefix(strings.TrimPrefix(line, "tunnel-gateway: "), "forged") {
			return fmt.Sprintf("text of a manifest forged the line %q", line)
		}
	}
	return ""
}

// decoders decode the formats for programs.
var decoders = map[string]func([]byte, any) error{
	"json": json.Unmarshal, "envoy": json.Unmarshal, "envoy-routes": json.Unmarshal,
	"yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
}

// problemOf returns how the command's output controls the terminal, or "". Only standard
// output may contain colors, with --color always.
func problemOf(o outcome, arguments []string) string {
	if slices.Contains(arguments, "always") {
		o.stdout = colors.Replace(o.stdout)
	}
	if format := slices.Index(arguments, "-o"); format >= 0 && o.stdout != "" && decoders[arguments[format+1]] != nil {
		var value any
		if err := decoders[arguments[format+1]]([]byte(o.stdout), &value); err != nil {
			return fmt.Sprintf("standard output is not valid: %v", err)
		}
	}
	for name, text := range map[string]string{"standard output": o.stdout, "standard error": o.stderr} {
		if problem := problemIn(text); problem != "" {
			return name + ": " + problem
		}
	}
	return ""
}

// findings are the outputs that control the terminal.
type findings []string

// run runs a command and records whether its output controls the terminal.
func (f *findings) run(t *testing.T, name, stdin string, arguments ...string) outcome {
	t.Helper()
	got := run(t, stdin, arguments...)
	if problem := problemOf(got, arguments); problem != "" {
		*f = append(*f, fmt.Sprintf("%s, %q: %s", name, arguments, problem))
	}
	return got
}

// check fails for each such output.
func (f *findings) check(t *testing.T) {
	t.Helper()
	for _, finding := range *f {
		t.Error(finding)
	}
}

// place is a string or a key in a manifest.
type place struct {
	path string
	// change makes the text at the place hostile, and returns a function that restores it.
	change func() func()
}

// places returns the strings and keys below value.
func places(path string, value any, set func(any)) []place {
	switch value := value.(type) {
	case string:
		return []place{{path, func() func() {
			set(value + control)
			return func() { set(value) }
		}}}
	case []any:
		var found []place
		for i := range value {
			found = append(found, places(fmt.Sprintf("%s[%d]", path, i), value[i], func(v any) { value[i] = v })...)
		}
		return found
	case map[string]any:
		var found []place
		for _, key := range slices.Sorted(maps.Keys(value)) {
			found = append(found, place{path + "." + key + " (key)", func() func() {
				content := value[key]
				delete(value, key)
				value[key+control] = content
				return func() {
					delete(value, key+control)
					value[key] = content
				}
			}})
			found = append(found, places(path+"."+key, value[key], func(v any) { value[key] = v })...)
		}
		return found
	}
	return nil
}

// manifests are the objects in a manifest.
type manifests []any

// readHostile returns the objects in testdata/hostile.in.yaml.
func readHostile(t *testing.T, edit func(string) string) manifests {
	t.Helper()
	text, err := os.ReadFile("testdata/hostile.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var objects manifests
	for _, document := range strings.Split(edit(string(text)), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// text returns the objects as consecutive JSON values.
func (m manifests) text(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	for _, object := range m {
		if err := json.NewEncoder(&b).Encode(object); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// selects matches the fields without which the controller serves nothing.
var selects = regexp.MustCompile(`^document \d+\.(kind|apiVersion)$|gatewayClassName$|controllerName$|\(key\)$`)

// names matches the fields that refer to other objects.
var names = regexp.MustCompile(`(name|namespace)$`)

// hostileCommands are arguments for plan with each format and each question.
var hostileCommands = [][]string{
	{"-o", "table", "--wide", "--strict"},
	{"--color", "always"},
	{"-o", "json"},
	{"-o", "yaml"},
	{"-o", "envoy", "--gateway", "platform/shared"},
	{"-o", "envoy-routes", "--gateway", "platform/shared"},
	{"--why", "shop.example.com/a%1b%0aforged\u202e", "--header", "x-header:" + control, "--color", "always"},
	{"--why", "set.example.com/", "-o", "json"},
	{"--why", "set.example.com/", "-o", "yaml"},
	{"--diff", "--color", "always"},
	{"--diff", "-o", "json"},
	{"--gateway", "platform/" + control},
}

// changeEach makes each place in the objects hostile alone, and returns the places that plan accepts
// and that do not select other objects.
func (f *findings) changeEach(t *testing.T, objects manifests) (accepted []place) {
	t.Helper()
	var all []place
	for i := range objects {
		all = append(all, places(fmt.Sprintf("document %d", i+1), objects[i], func(v any) { objects[i] = v })...)
	}
	for _, p := range all {
		restore := p.change()
		if got := f.run(t, p.path, objects.text(t), "plan", "-f", "-"); got.status == 0 && !selects.MatchString(p.path) {
			accepted = append(accepted, p)
		}
		restore()
	}
	if len(all) < 300 || len(accepted) < 50 {
		t.Errorf("only %d places, of which plan accepts %d", len(all), len(accepted))
	}
	return accepted
}

// TestNoTextControlsTheTerminal makes each string and each key in a manifest hostile,
// first alone, which mostly results in an error, and then together with all others that
// plan accepts.
func TestNoTextControlsTheTerminal(t *testing.T) {
	e := newEdge(t)
	e.SetConfiguration(e.ids["changed"], json.RawMessage(`{"ingress":[{"service":"http_status:404"}],"unknown":`+strconv.QuoteToASCII("a\u202e\nforged")+`}`))
	objects := readHostile(t, e.replacer().Replace)
	var found findings
	accepted := found.changeEach(t, objects)
	// The names connect the objects, so that they become hostile last.
	for i, command := range [][]string{{"plan", "-f", "-", "-o", "envoy", "--gateway", "platform/shared"}, {"plan", "-f", "-"}} {
		if got := run(t, objects.text(t), command...); got.status != 0 {
			t.Fatalf("%q: %s", command, got.stderr)
		}
		for _, p := range accepted {
			if restore := p.change(); i == 0 && names.MatchString(p.path) || run(t, objects.text(t), command...).status != 0 {
				restore() // not valid together with the others
			}
		}
		text := objects.text(t)
		for _, arguments := range hostileCommands {
			found.run(t, "all places", text, append([]string{"plan", "-f", "-", "--assume-secrets"}, arguments...)...)
		}
	}
	found.check(t)
}

// The formats for programs escape unprintable characters in strings, and keep their values.
func TestFormatsForProgramsKeepHostileValues(t *testing.T) {
	manifest := strings.ReplaceAll(routeManifest, "rules: [{", "rules: [{matches: [{path: {type: RegularExpression, value: "+strconv.QuoteToASCII("/a\u202e\u0085\ufeff\U000e0001: #b")+"}}, {path: {value: "+strconv.QuoteToASCII("/only\u202e")+", type: RegularExpression}}], ")
	all := strings.Join([]string{gatewayManifest, manifest, serviceManifest}, "---\n")
	var found findings
	values := map[string]any{}
	for _, format := range []string{"json", "yaml"} {
		got := found.run(t, format, all, "plan", "-f", "-", "-o", format)
		var value any
		if err := decoders[format]([]byte(got.stdout), &value); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if text := fmt.Sprint(value); !strings.Contains(text, "/a\u202e\u0085\ufeff\U000e0001: #b") || !strings.Contains(text, "/only\u202e") {
			t.Errorf("%s lost the characters: %q", format, text)
		}
		values[format] = value
	}
	if diff := cmp.Diff(values["json"], values["yaml"]); diff != "" {
		t.Errorf("YAML and JSON differ (-json +yaml):\n%s", diff)
	}
	found.check(t)
}

// The formats for Envoy do, too.
func TestFormatsForEnvoyKeepHostileValues(t *testing.T) {
	var found findings
	text := readHostile(t, func(text string) string {
		return strings.Replace(text, "{name: x-header, value: text}", "{name: x-header, value: "+strconv.QuoteToASCII("a\u202e\u009b\U000e0001")+"}", 1)
	}).text(t)
	for _, format := range []string{"envoy", "envoy-routes"} {
		got := found.run(t, format, text, "plan", "-f", "-", "--assume-secrets", "--gateway", "platform/shared", "-o", format)
		if !strings.Contains(got.stdout, `"a\u202e\u009b\udb40\udc01"`) {
			t.Errorf("%s does not contain the value: %s", format, got.stdout)
		}
	}
	found.check(t)
}

// Invalid YAML, and file and directory names, do not control the terminal.
func TestNoFileControlsTheTerminal(t *testing.T) {
	var found findings
	for name, text := range map[string]string{
		"YAML syntax":    "a: [\n" + control,
		"duplicate keys": "\"a\\e[2J\\nforged\": 1\n\"a\\e[2J\\nforged\": 2\n",
		"JSON syntax":    "{\"a\": \x1b[2J}",
		"template":       "a: {{ \u202e\x1b }}",
		"not UTF-8":      "a: \xff\x1b",
		"text":           strconv.Quote(control),
	} {
		if got := found.run(t, name, text, "plan", "-f", "-"); got.status != 1 {
			t.Errorf("%s: status = %d, want 1", name, got.status)
		}
	}
	dir := t.TempDir()
	hostile := filepath.Join(dir, "a"+strings.ReplaceAll(control, "\x00", ""))
	if err := os.MkdirAll(filepath.Join(hostile, "sub\x1b[2J\nforged"), 0o750); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(hostile, "empty\x1b[2J\nforged.yaml"), "")
	write(t, filepath.Join(hostile, "gateway\nforged.yaml"), gatewayManifest)
	found.run(t, "directory", "", "plan", "-f", hostile)
	found.run(t, "subdirectories", "", "plan", "-R", "-f", hostile)
	write(t, filepath.Join(hostile, "wrong\u202e\nforged.yaml"), "a: 1")
	found.run(t, "file", "", "plan", "-f", hostile)
	found.run(t, "missing file", "", "plan", "-f", hostile+"/missing")
	found.check(t)
}

// Neither arguments nor an API server control the terminal.
func TestNoArgumentOrServerControlsTheTerminal(t *testing.T) {
	var found findings
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no" + control})
	}))
	t.Cleanup(server.Close)
	kubeconfig := write(t, filepath.Join(t.TempDir(), "config"), `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}, {name: "`+
		`b\e[2J\nforged", context: {cluster: a}}], clusters: [{name: a, cluster: {server: "`+server.URL+`"}}]}`)
	for _, arguments := range [][]string{
		{control},
		{"plan", control},
		{"plan", "--" + control},
		{"plan", "-o", control},
		{"plan", "--context", control, "--kubeconfig", kubeconfig},
		{"plan", "--kubeconfig", kubeconfig},
		{"wait", control, "--kubeconfig", kubeconfig},
		{"wait", "a/" + control, "--kubeconfig", kubeconfig},
		{"wait", "a/b", "--kubeconfig", kubeconfig},
		{"pause", "a/b", "--kubeconfig", kubeconfig},
		{"dns", control},
		{"dns", "adopt", control, "--cloudflare-api-token", "token", "--kubeconfig", kubeconfig},
		{"help", control},
		{"__complete", "plan", "--kubeconfig", kubeconfig, "--context", ""},
	} {
		found.run(t, "arguments", "", arguments...)
	}
	found.check(t)
}
