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

// source is the type-checked source code of packages of the module.
type source struct {
	fset *token.FileSet
	info *types.Info
	// packages are the packages by import path.
	packages map[string]*types.Package
	// files are the files of each package, by import path.
	files map[string][]*ast.File
}

// newSource returns a source without packages.
func newSource() *source {
	return &source{
		fset: token.NewFileSet(), packages: map[string]*types.Package{}, files: map[string][]*ast.File{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
			Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
	}
}

// listedPackage is a package in the output of go list.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// readSource type-checks packages of the module and the packages of the module
// that they import. It reads other packages from the compiler's export data.
func readSource(directory string, packages ...string) (*source, error) {
	all, err := listPackages(directory, packages)
	if err != nil {
		return nil, err
	}
	s := newSource()
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	config := types.Config{Importer: &moduleImporter{s.packages, importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("go list returned no export data")
		}
		return os.Open(exports[path])
	})}}
	for _, p := range all { // go list prints a package after the packages that it imports
		if !strings.HasPrefix(p.ImportPath, module) {
			continue
		}
		if err := s.check(&config, p); err != nil {
			return nil, fmt.Errorf("check package %s: %w", p.ImportPath, err)
		}
	}
	return s, nil
}

// listPackages lists the packages and all packages that they import, with the
// export data of each.
func listPackages(directory string, packages []string) ([]listedPackage, error) {
	command := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, packages...)...)
	var stderr bytes.Buffer
	command.Dir, command.Stderr = directory, &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w\n%s", err, stderr.String())
	}
	var all []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listedPackage
		if err := decoder.Decode(&p); err != nil {
			return nil, fmt.Errorf("parse the output of go list: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// check parses and type-checks a package and adds it to the source.
func (s *source) check(config *types.Config, p listedPackage) error {
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

// moduleImporter prefers the packages that were type-checked from source, so that
// every use of an identifier refers to the same object.
type moduleImporter struct {
	checked map[string]*types.Package
	others  types.Importer
}

// Import returns the package with the import path.
func (i *moduleImporter) Import(path string) (*types.Package, error) {
	if p, found := i.checked[path]; found {
		return p, nil
	}
	return i.others.Import(path)
}
