package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	helm "helm.sh/helm/v4/pkg/cmd"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"mvdan.cc/sh/v3/syntax"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
)

// knownPrograms are the programs that the pages may use, each with a function that
// checks its arguments. The arguments are not checked if the function is nil.
var knownPrograms = map[string]func([]string) error{
	"make":                   checkMake,
	"kubectl":                checkKubectl,
	"helm":                   checkHelm,
	"tunnel-gateway":         checkTunnelGateway,
	"bin/tunnel-gateway":     checkTunnelGateway,
	"kubectl-tunnel_gateway": checkTunnelGateway,
	"kubectl-krew":           nil,
	"go":                     checkPaths,
	"git":                    checkPaths,
	"install":                checkPaths,
	"mkdir":                  nil,
	"kustomize":              checkPaths,
	"sed":                    checkPaths,
	"cat":                    nil,
	"cd":                     nil,
	"chmod":                  nil,
	"curl":                   nil,
	"cut":                    nil,
	"date":                   nil,
	"cosign":                 nil,
	"docker":                 nil,
	"echo":                   nil,
	"envoy":                  nil,
	"export":                 nil,
	"grep":                   nil,
	"head":                   nil,
	"ingress2gateway":        nil,
	"jq":                     nil,
	"kind":                   nil,
	"ln":                     nil,
	"printf":                 nil,
	"seq":                    nil,
	"sort":                   nil,
	"uniq":                   nil,
}

// placeholder matches text that the reader replaces.
var placeholder = regexp.MustCompile(`<[a-z][a-zA-Z_' -]*>`)

// Commands returns the simple commands in a shell block, each as a list of words. It adds
// the functions that the block declares to functions, and omits calls to functions.
func Commands(block string, functions map[string]bool) ([][]string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(placeholder.ReplaceAllString(block, "PLACEHOLDER")), "")
	if err != nil {
		return nil, err
	}
	var all [][]string
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.FuncDecl:
			functions[n.Name.Value] = true
		case *syntax.DeclClause:
			all = append(all, []string{n.Variant.Value})
		case *syntax.CallExpr:
			if words := callWords(n); len(words) > 0 && !functions[words[0]] {
				all = append(all, words)
			}
		}
		return true
	})
	return all, nil
}

func callWords(call *syntax.CallExpr) []string {
	words := make([]string, len(call.Args))
	for i, arg := range call.Args {
		words[i] = word(arg.Parts)
	}
	return words
}

// word returns an argument as the program gets it. It does not expand variables or
// command substitutions.
func word(parts []syntax.WordPart) string {
	var out bytes.Buffer
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.SglQuoted:
			out.WriteString(p.Value)
		case *syntax.DblQuoted:
			out.WriteString(word(p.Parts))
		default:
			_ = syntax.NewPrinter().Print(&out, part) // to memory
		}
	}
	return out.String()
}

// Check returns an error if a command is not valid. It does not run the command.
func Check(words []string) error {
	if len(words) > 1 && words[0] == "kubectl" {
		plugin := "kubectl-" + strings.ReplaceAll(words[1], "-", "_")
		if _, known := knownPrograms[plugin]; known {
			words = append([]string{plugin}, words[2:]...)
		}
	}
	check, known := knownPrograms[words[0]]
	switch {
	case !known:
		return fmt.Errorf("%s is not one of the programs that pages may use", words[0])
	case check == nil:
		return nil
	}
	if err := check(words[1:]); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	return nil
}

// repositoryDirectories are the repository's top-level directories.
var repositoryDirectories = []string{"api", "charts", "cmd", "config", "docs", "internal", "provider", "test", ".ci"}

// checkPaths returns an error if an argument looks like a path in the repository
// and does not exist.
func checkPaths(words []string) error {
	var errs []error
	for _, w := range words {
		w = strings.TrimSuffix(strings.TrimPrefix(w, "./"), "/...")
		if first, _, _ := strings.Cut(w, "/"); !slices.Contains(repositoryDirectories, first) {
			continue
		}
		if found, err := filepath.Glob(filepath.Join(root, w)); err != nil || len(found) == 0 {
			errs = append(errs, fmt.Errorf("%s does not exist", w))
		}
	}
	return errors.Join(errs...)
}

// checkMake returns an error if the Makefile lacks a target or a variable.
func checkMake(words []string) error {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	for _, w := range words {
		name, _, variable := strings.Cut(w, "=")
		pattern := `(?m)^` + regexp.QuoteMeta(name) + `:`
		if variable {
			pattern = `\b` + regexp.QuoteMeta(name) + `\b`
		}
		if !regexp.MustCompile(pattern).Match(makefile) {
			return fmt.Errorf("the Makefile has no %s", name)
		}
	}
	return nil
}

func checkKubectl(words []string) error {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	return errors.Join(parse(kubectl.NewKubectlCommand(kubectl.KubectlOptions{IOStreams: streams}), words), checkPaths(words))
}

func checkHelm(words []string) error {
	command, err := helm.NewRootCmd(&bytes.Buffer{}, nil, func(bool) {})
	if err != nil {
		return err
	}
	return errors.Join(parse(command, words), checkPaths(words), checkValues(words))
}

// parse finds the program's subcommand and parses its flags.
func parse(program *cobra.Command, words []string) error {
	command, rest, err := program.Find(words)
	if err != nil {
		return err
	}
	if command == program {
		return fmt.Errorf("%s has no such subcommand", program.Name())
	}
	return command.ParseFlags(rest)
}

// checkValues returns an error if --set sets a value that the chart does not have.
func checkValues(words []string) error {
	if !slices.Contains(words, "charts/tunnel-gateway") {
		return nil
	}
	values, err := os.ReadFile(filepath.Join(root, "charts", "tunnel-gateway", "README.md"))
	if err != nil {
		return err
	}
	for i, w := range words[:len(words)-1] {
		name, _, _ := strings.Cut(words[i+1], "=")
		if (w == "--set" || w == "--set-string") && !bytes.Contains(values, []byte("`"+name+"`")) {
			return fmt.Errorf("the chart has no value %s", name)
		}
	}
	return nil
}

// checkTunnelGateway runs tunnel-gateway. It adds --help, which makes the program parse
// its flags and exit, unless the command is a plan that reads only files in the
// repository.
func checkTunnelGateway(words []string) error {
	arguments := append([]string{"tunnel-gateway"}, words...)
	for i, w := range arguments {
		if first, _, _ := strings.Cut(w, "/"); slices.Contains(repositoryDirectories, first) {
			arguments[i] = filepath.Join(root, w)
		}
	}
	if !readsOnlyRepositoryFiles(words) {
		arguments = append(arguments, "--help")
	}
	var problems bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &problems}
	if cli.Run(context.Background(), arguments, streams) == 1 {
		return errors.New(strings.TrimSpace(problems.String()))
	}
	return checkPaths(words)
}

// readsOnlyRepositoryFiles reports whether the words are a plan that reads files in the
// repository and nothing else.
func readsOnlyRepositoryFiles(words []string) bool {
	if len(words) == 0 || words[0] != "plan" || !slices.Contains(words, "-f") {
		return false
	}
	clusterFlags := []string{"--context", "--kubeconfig", "--diff"}
	for i, w := range words[1:] {
		first, _, _ := strings.Cut(w, "/")
		if slices.Contains(clusterFlags, w) || words[i] == "-f" && !slices.Contains(repositoryDirectories, first) {
			return false
		}
	}
	return true
}
