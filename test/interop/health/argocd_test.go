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

// downloaded is a version of a module of which some files are read and no code
// is used, so that its requirements, a newer Go among them, do not matter.
type downloaded struct{ path, version, sum string }

// argoCDModule is the first minor version that has a script for ListenerSets.
var argoCDModule = downloaded{
	"github.com/argoproj/argo-cd/v3", "v3.6.1", "h1:OmhqeKiR3C//awbFrhQqFdtRI+Qiv17j8vqm3UkMj/g=",
}

// files returns the files of the module whose names begin and end like this,
// by their names in the module. The module comes from Go's proxy, or from the
// cache of modules when it has been there before.
func (d downloaded) files(t *testing.T, prefix, suffix string) map[string]string {
	t.Helper()
	archive, err := zip.OpenReader(d.zip(t))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close() //nolint:errcheck // it was only read
	found := map[string]string{}
	for _, file := range archive.File {
		name := strings.TrimPrefix(file.Name, d.path+"@"+d.version+"/")
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			found[name] = read(t, file)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s %s has no files %s…%s", d.path, d.version, prefix, suffix)
	}
	return found
}

// zip returns the file of the module.
func (d downloaded) zip(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", d.path+"@"+d.version)
	command.Dir = t.TempDir() // outside of any module
	command.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	// It fails when the module wants a newer Go, after it has downloaded it.
	out, failure := command.Output()
	var answer struct{ Zip, Sum, Error string }
	if err := json.Unmarshal(out, &answer); err != nil || answer.Zip == "" {
		t.Fatalf("go mod download %s@%s: %v %v %s", d.path, d.version, failure, err, answer.Error)
	}
	if answer.Sum != d.sum {
		t.Fatalf("%s@%s has the sum %s, want %s", d.path, d.version, answer.Sum, d.sum)
	}
	return answer.Zip
}

func read(t *testing.T, file *zip.File) string {
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

// scripts are health scripts by group and kind, as in "example.com/Kind".
type scripts map[string]string

const customizations = "resource_customizations/"

// argoScripts returns the scripts that Argo CD has of its own for the Gateway
// API.
func argoScripts(t *testing.T) scripts {
	t.Helper()
	all := scripts{}
	for name, text := range argoCDModule.files(t, customizations+"gateway.networking.k8s.io/", "/health.lua") {
		all[strings.TrimSuffix(strings.TrimPrefix(name, customizations), "/health.lua")] = text
	}
	return all
}

const healthKey = "resource.customizations.health."

// with returns the scripts with those of an argocd-cm in their places. Its keys
// are resource.customizations.health.<group>_<kind>.
func (s scripts) with(settings map[string]string) scripts {
	all := scripts{}
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

// judge runs the script for the object's kind, unless it is being deleted. Argo
// CD takes no notice of the health of objects that it has no script for.
func (s scripts) judge(object *unstructured.Unstructured) verdict {
	if object.GetDeletionTimestamp() != nil {
		return verdict{healthProgressing, "Pending deletion"}
	}
	kind := object.GroupVersionKind()
	script, ok := s[kind.Group+"/"+kind.Kind]
	if !ok {
		return verdict{healthNone, "there is no script"}
	}
	said, err := runLua(script, object.Object)
	if err != nil {
		return verdict{healthUnknown, err.Error()}
	}
	return said
}

// runLua runs a health script in the kind of machine that Argo CD has for
// scripts: without the libraries for strings, files and the like.
func runLua(script string, object map[string]any) (verdict, error) {
	machine := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer machine.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		library := lua.P{Fn: machine.NewFunction(open), Protect: true}
		if err := machine.CallByParam(library, lua.LString(name)); err != nil {
			return verdict{}, err
		}
	}
	machine.SetGlobal("obj", toLua(machine, object))
	if err := machine.DoString(script); err != nil {
		return verdict{}, err
	}
	result, ok := machine.Get(-1).(*lua.LTable)
	if !ok {
		return verdict{}, fmt.Errorf("the script returned a %s", machine.Get(-1).Type())
	}
	return verdict{lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))}, nil
}

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
