package plugin

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// portable are the identifiers in package syscall that every platform has.
var portable = []string{"ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "Errno", "Signal", "SIGINT", "SIGTERM"}

// Building the plugin for the other platforms takes minutes, so CI does not. This test finds what
// would not compile there: a package without files for a platform, and system calls.
func TestPluginIsPortable(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		command := exec.CommandContext(t.Context(), "go", "list", "-C", root, "-deps", "-f",
			`{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/tunnel-gateway")
		command.Env = append(os.Environ(), "GOOS="+system, "GOARCH=arm64", "CGO_ENABLED=0")
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", system, err)
		}
		files := strings.Fields(string(output))
		if len(files) < 100 {
			t.Fatalf("found only %d files", len(files))
		}
		for _, file := range files {
			for _, problem := range systemCalls(t, file) {
				t.Errorf("%s does not compile for %s: %s", filepath.Base(file), system, problem)
			}
		}
	}
}

// systemCalls returns what a file uses that not every platform has.
func systemCalls(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, imported := range file.Imports {
		if strings.HasPrefix(imported.Path.Value, `"golang.org/x/sys/`) {
			found = append(found, "it imports "+imported.Path.Value)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok && name.Name == "syscall" && !slices.Contains(portable, selector.Sel.Name) {
				found = append(found, "it uses syscall."+selector.Sel.Name)
			}
		}
		return true
	})
	return found
}
