package health

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// goModule is a version of a Go module. The tests read the module's files but do not
// import it, so that they need neither its dependencies nor its Go version.
type goModule struct{ path, version, sum string }

// argoCDModule is the first minor version of Argo CD with a script for ListenerSets.
var argoCDModule = goModule{
	"github.com/argoproj/argo-cd/v3", "v3.6.1", "h1:OmhqeKiR3C//awbFrhQqFdtRI+Qiv17j8vqm3UkMj/g=",
}

// files returns the module's files whose paths have the prefix and the suffix: their
// contents by path. Go downloads the module unless it is in the module cache.
func (m goModule) files(t *testing.T, prefix, suffix string) map[string]string {
	t.Helper()
	archive, err := zip.OpenReader(m.zip(t))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close() //nolint:errcheck // the archive is only read
	found := map[string]string{}
	for _, file := range archive.File {
		name := strings.TrimPrefix(file.Name, m.path+"@"+m.version+"/")
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			found[name] = readZipFile(t, file)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s %s contains no file %s…%s", m.path, m.version, prefix, suffix)
	}
	return found
}

// zip returns the path to the module's zip file.
func (m goModule) zip(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.path+"@"+m.version)
	command.Dir = t.TempDir() // outside any module
	command.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	// The command downloads a module that requires a newer Go, but then fails.
	out, exitErr := command.Output()
	var result struct{ Zip, Sum, Error string }
	if err := json.Unmarshal(out, &result); err != nil || result.Zip == "" {
		t.Fatalf("go mod download %s@%s: %v %v %s", m.path, m.version, exitErr, err, result.Error)
	}
	if result.Sum != m.sum {
		t.Fatalf("the checksum of %s@%s is %s, want %s", m.path, m.version, result.Sum, m.sum)
	}
	return result.Zip
}

// readZipFile returns a file's content.
func readZipFile(t *testing.T, file *zip.File) string {
	t.Helper()
	content, err := file.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// argoCDScripts maps group and kind, like "example.com/Kind", to health scripts.
type argoCDScripts map[string]string

const customizations = "resource_customizations/"

// builtinScripts returns the Gateway API scripts in Argo CD's source.
func builtinScripts(t *testing.T) argoCDScripts {
	t.Helper()
	all := argoCDScripts{}
	for name, text := range argoCDModule.files(t, customizations+"gateway.networking.k8s.io/", "/health.lua") {
		all[strings.TrimSuffix(strings.TrimPrefix(name, customizations), "/health.lua")] = text
	}
	return all
}

const healthKey = "resource.customizations.health."

// override returns the scripts, replaced by those in the ConfigMap argocd-cm. Its keys
// are resource.customizations.health.<group>_<kind>.
func (s argoCDScripts) override(settings map[string]string) argoCDScripts {
	all := argoCDScripts{}
	for kind, text := range s {
		all[kind] = text
	}
	for key, text := range settings {
		if kind, ok := strings.CutPrefix(key, healthKey); ok {
			all[strings.Replace(kind, "_", "/", 1)] = text
		}
	}
	return all
}

// assess runs the script for the object's kind, unless the object is being deleted. Argo
// CD ignores the health of objects without a script.
func (s argoCDScripts) assess(object *unstructured.Unstructured) assessment {
	if object.GetDeletionTimestamp() != nil {
		return assessment{healthProgressing, "Pending deletion"}
	}
	kind := object.GroupVersionKind()
	script, ok := s[kind.Group+"/"+kind.Kind]
	if !ok {
		return assessment{healthNone, "no script"}
	}
	result, err := runLua(script, object.Object)
	if err != nil {
		return assessment{healthUnknown, err.Error()}
	}
	return result
}

// runLua runs a health script with the same Lua libraries as Argo CD, which does not
// load the libraries for strings and files, for example.
func runLua(script string, object map[string]any) (assessment, error) {
	machine := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer machine.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		library := lua.P{Fn: machine.NewFunction(open), Protect: true}
		if err := machine.CallByParam(library, lua.LString(name)); err != nil {
			return assessment{}, err
		}
	}
	machine.SetGlobal("obj", toLua(machine, object))
	if err := machine.DoString(script); err != nil {
		return assessment{}, err
	}
	result, ok := machine.Get(-1).(*lua.LTable)
	if !ok {
		return assessment{}, fmt.Errorf("the script returns a %s, want a table", machine.Get(-1).Type())
	}
	return assessment{lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))}, nil
}

// toLua converts a JSON value to a Lua value.
func toLua(machine *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := machine.NewTable()
		for _, item := range value {
			table.Append(toLua(machine, item))
		}
		return table
	case map[string]any:
		table := machine.NewTable()
		for key, item := range value {
			table.RawSetString(key, toLua(machine, item))
		}
		return table
	}
	return lua.LNil
}
