package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is the path of the module whose packages are read as source.
const module = "github.com/tunnel-gateway/tunnel-gateway/"

// source is the product's code: syntax and types of every package of ours that
// the named ones need, and of those themselves.
type source struct {
	fset *token.FileSet
	info *types.Info
	// packages are ours, and files what they are written in, by the path.
	packages map[string]*types.Package
	files    map[string][]*ast.File
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// readSource type-checks the packages in the folder. What is not ours is taken
// from the compiler's export data, so that Go builds it if it has to.
func readSource(folder string, packages ...string) (*source, error) {
	all, err := list(folder, packages)
	if err != nil {
		return nil, err
	}
	s := &source{
		fset:     token.NewFileSet(),
		packages: map[string]*types.Package{},
		files:    map[string][]*ast.File{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
			Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	config := types.Config{Importer: &imports{ours: s.packages, others: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("there is no export data")
		}
		return os.Open(exports[path])
	})}}
	for _, p := range all { // what is imported comes first
		if !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		if err := s.check(&config, p); err != nil {
			return nil, fmt.Errorf("check package %s: %w", p.ImportPath, err)
		}
	}
	return s, nil
}

func list(folder string, packages []string) ([]listed, error) {
	command := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, packages...)...)
	var wrong bytes.Buffer
	command.Dir, command.Stderr = folder, &wrong
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w\n%s", err, wrong.String())
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

func (s *source) check(config *types.Config, p listed) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	checked, err := config.Check(p.ImportPath, s.fset, files, s.info)
	if err != nil {
		return err
	}
	s.packages[p.ImportPath], s.files[p.ImportPath] = checked, files
	return nil
}

// imports finds our own packages among those that were checked, so that there
// is one object for each thing.
type imports struct {
	ours   map[string]*types.Package
	others types.Importer
}

// Import returns the package of the path.
func (i *imports) Import(path string) (*types.Package, error) {
	if p, ok := i.ours[path]; ok {
		return p, nil
	}
	return i.others.Import(path)
}
