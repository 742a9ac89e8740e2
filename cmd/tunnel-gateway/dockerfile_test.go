package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// No container runtime is needed to know that the Dockerfile's build works: it
// is carried out here with the files that it copies, and no others. Carried out
// twice, in two places, it gives the same bytes.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := strings.ReplaceAll(string(text), "\\\n", " ")
	build := regexp.MustCompile(`make build .*`).FindString(dockerfile)
	build = strings.NewReplacer("${VERSION}", "v9.9.9", "${COMMIT}", "abcdef").Replace(build)
	var binaries [][]byte
	for range 2 {
		dir := t.TempDir()
		for _, sources := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(dockerfile, -1) {
			for source := range strings.FieldsSeq(sources[1]) {
				copyUnlessIgnored(t, source, dir)
			}
		}
		command := exec.CommandContext(t.Context(), "bash", "-c", build)
		command.Dir = dir
		// No repository above, and no settings of a caller's make.
		command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+dir, "MAKEFLAGS=", "GOFLAGS=-mod=readonly")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", build, err, out)
		}
		binary, err := os.ReadFile(filepath.Join(dir, "bin/tunnel-gateway"))
		if err != nil {
			t.Fatal(err)
		}
		binaries = append(binaries, binary)
		says, err := exec.CommandContext(t.Context(), filepath.Join(dir, "bin/tunnel-gateway"), "version").Output()
		if err != nil || !strings.HasPrefix(string(says), "tunnel-gateway v9.9.9\ncommit abcdef\ngo1.") || !strings.Contains(string(says), "\nGateway API v1.") {
			t.Errorf("the binary says %q, %v", says, err)
		}
	}
	if !bytes.Equal(binaries[0], binaries[1]) {
		t.Error("the same sources give two binaries")
	}
}

// copyUnlessIgnored copies a file or a folder of the repository to dir, but for
// what .dockerignore keeps out.
func copyUnlessIgnored(t *testing.T, source, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n!"+source+"\n") {
		t.Errorf(".dockerignore keeps %s out, which the Dockerfile copies", source)
	}
	err = filepath.WalkDir(filepath.Join(root, source), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "testdata" {
			return fs.SkipDir
		}
		relative, err := filepath.Rel(root, path)
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The image is built with the Go that go.mod asks for, or newer.
func TestDockerfileHasTheGoOfGoMod(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(goMod)
	image := regexp.MustCompile(`GO_IMAGE=docker.io/library/golang:(\d+\.\d+)\.`).FindSubmatch(dockerfile)
	if version == nil || image == nil || !bytes.Equal(version[1], image[1]) {
		t.Errorf("go.mod has Go %s, and the image %s", version, image)
	}
}
