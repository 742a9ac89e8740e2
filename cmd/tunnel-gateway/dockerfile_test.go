package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestDockerfileBuildIsReproducible runs the Dockerfile's build without a container
// runtime, twice, in directories with only the files that the Dockerfile copies. Both
// builds must result in the same binary.
func TestDockerfileBuildIsReproducible(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := strings.ReplaceAll(string(text), "\\\n", " ")
	build := regexp.MustCompile(`make build .*`).FindString(dockerfile)
	build = strings.NewReplacer("${VERSION}", "v9.9.9", "${COMMIT}", "abcdef", "${CONNECTOR_DIGEST}", "sha256:0123", "${ENVOY_DIGEST}", "sha256:4567").Replace(build)
	var binaries [][]byte
	for range 2 {
		dir := t.TempDir()
		for _, sources := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(dockerfile, -1) {
			copySources(t, strings.Fields(sources[1]), dir)
		}
		command := exec.CommandContext(t.Context(), "bash", "-c", build)
		command.Dir = dir
		// The build must use neither a parent repository nor a calling make's settings.
		command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+dir, "MAKEFLAGS=", "GOFLAGS=-mod=readonly")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", build, err, out)
		}
		binary, err := os.ReadFile(filepath.Join(dir, "bin/tunnel-gateway"))
		if err != nil {
			t.Fatal(err)
		}
		binaries = append(binaries, binary)
		version, err := exec.CommandContext(t.Context(), filepath.Join(dir, "bin/tunnel-gateway"), "version").Output()
		if want := regexp.MustCompile(`^tunnel-gateway v9\.9\.9\ncommit abcdef\ngo1\..*\nGateway API v1\..*\nconnectors .*@sha256:0123\nenvoy .*@sha256:4567\n$`); err != nil || !want.Match(version) {
			t.Errorf("the command version prints %q (%v), want a match for %s", version, err, want)
		}
	}
	if !bytes.Equal(binaries[0], binaries[1]) {
		t.Error("two builds of the same sources result in different binaries")
	}
}

// copySources copies files and directories in the repository to dir, except what
// .dockerignore excludes.
func copySources(t *testing.T, sources []string, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if !strings.Contains(string(text), "\n!"+source+"\n") {
			t.Errorf(".dockerignore excludes %s, which the Dockerfile copies", source)
		}
	}
	arguments := []string{"-C", root, "-c"}
	for _, excluded := range regexp.MustCompile(`(?m)^\*\*/(.*)$`).FindAllStringSubmatch(string(text), -1) {
		arguments = append(arguments, "--exclude="+excluded[1])
	}
	var archive bytes.Buffer
	pack := exec.CommandContext(t.Context(), "tar", append(arguments, sources...)...)
	pack.Stdout = &archive
	if err := pack.Run(); err != nil {
		t.Fatalf("pack %q: %v", sources, err)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-C", dir, "-x")
	unpack.Stdin = &archive
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack %q: %v\n%s", sources, err, out)
	}
}

func TestDockerfileUsesTheGoVersionOfGoMod(t *testing.T) {
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
		t.Errorf("go.mod requires Go %s, but the Dockerfile uses %s", version, image)
	}
}
