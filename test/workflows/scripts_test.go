package workflows

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	digest     = "sha256:" + strings.Repeat("ab", 32)
	connectors = "docker.io/cloudflare/cloudflared:1.2.3@sha256:" + strings.Repeat("cd", 32)
	envoy      = "docker.io/envoyproxy/envoy:distroless-v1.2.3@sha256:" + strings.Repeat("ef", 32)
)

// run runs a .ci script in the directory and returns its output and its errors.
func run(t *testing.T, directory, script string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	var output, problems strings.Builder
	command := exec.CommandContext(t.Context(), filepath.Join(directory, ".ci", script), arguments...)
	command.Dir, command.Stdout, command.Stderr = directory, &output, &problems
	command.Env = append(os.Environ(), "PATH="+filepath.Join(directory, "path")+":"+os.Getenv("PATH"))
	err = command.Run()
	return output.String(), problems.String(), err
}

// repository returns a directory with the scripts and the chart, and with more files,
// whose contents are given by path.
func repository(t *testing.T, more map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for _, path := range []string{".ci", "charts"} {
		if err := os.CopyFS(filepath.Join(directory, path), os.DirFS(filepath.Join(root, path))); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range more {
		path = filepath.Join(directory, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

const chart = "charts/tunnel-gateway"

func TestTagMustMatchTheVersionOfTheChart(t *testing.T) {
	for name, test := range map[string]struct {
		chart, tag, wantErr string
	}{
		"same version":       {chart: "version: 1.2.3\nappVersion: 1.2.3\n", tag: "v1.2.3"},
		"pre-release":        {chart: "version: 1.2.3-rc.1\nappVersion: 1.2.3-rc.1\n", tag: "v1.2.3-rc.1"},
		"another version":    {chart: "version: 1.2.2\nappVersion: 1.2.3\n", tag: "v1.2.3", wantErr: "has version 1.2.2, but the tag is v1.2.3"},
		"another appVersion": {chart: "version: 1.2.3\nappVersion: 1.2.2\n", tag: "v1.2.3", wantErr: "has appVersion 1.2.2, but the tag is v1.2.3"},
		"tag without v":      {chart: "version: 1.2.3\nappVersion: 1.2.3\n", tag: "1.2.3", wantErr: "the tag is 1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := repository(t, map[string]string{chart + "/Chart.yaml": test.chart})
			_, problems, err := run(t, directory, "check-tag", chart, test.tag)
			if (err != nil) != (test.wantErr != "") || !strings.Contains(problems, test.wantErr) {
				t.Errorf("got error %v, %q; want an error that contains %q", err, problems, test.wantErr)
			}
		})
	}
}

func TestChartInstallsTheResolvedImages(t *testing.T) {
	directory := repository(t, nil)
	before := string(readFile(t, filepath.Join(directory, chart, "values.yaml")))
	if _, problems, err := run(t, directory, "pin-chart", chart, digest, connectors, envoy); err != nil {
		t.Fatal(err, problems)
	}
	want := strings.Replace(before, `  digest: ""`, "  digest: "+digest, 1)
	if diff := cmp.Diff(want, string(readFile(t, filepath.Join(directory, chart, "values.yaml")))); diff != "" {
		t.Errorf("values.yaml (-want +got):\n%s", diff)
	}
	description := string(readFile(t, filepath.Join(directory, chart, "Chart.yaml")))
	for _, image := range []string{"image: ghcr.io/tunnel-gateway/tunnel-gateway@" + digest, "image: " + connectors, "image: " + envoy} {
		if !strings.Contains(description, image) {
			t.Errorf("Chart.yaml does not contain %q:\n%s", image, description)
		}
	}
	rendered, err := exec.CommandContext(t.Context(), "go", "tool", "-C", root+"/test/interop/chart", "helm", "template", filepath.Join(directory, chart)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if image := `image: "ghcr.io/tunnel-gateway/tunnel-gateway@` + digest + `"`; !strings.Contains(string(rendered), image) {
		t.Errorf("the chart does not install %s", image)
	}
	if _, problems, err := run(t, directory, "pin-chart", chart, digest, connectors, envoy); err == nil {
		t.Errorf("the digests were written twice: %s", problems)
	}
}

func TestChartIsUnchangedWithoutDigests(t *testing.T) {
	for name, arguments := range map[string][]string{
		"no digest":                 {chart, "", connectors, envoy},
		"a tag":                     {chart, "v1.2.3", connectors, envoy},
		"connectors without digest": {chart, digest, "docker.io/cloudflare/cloudflared:1.2.3", envoy},
		"Envoy without digest":      {chart, digest, connectors, "docker.io/envoyproxy/envoy:distroless-v1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := repository(t, nil)
			if _, _, err := run(t, directory, "pin-chart", arguments...); err == nil {
				t.Error("pin-chart succeeded")
			}
			for _, file := range []string{"values.yaml", "Chart.yaml"} {
				want, got := readFile(t, filepath.Join(root, chart, file)), readFile(t, filepath.Join(directory, chart, file))
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", file, diff)
				}
			}
		})
	}
}

func TestImagesAreResolvedToDigests(t *testing.T) {
	files := map[string]string{
		"Dockerfile":         string(readFile(t, filepath.Join(root, "Dockerfile"))),
		"bin/tunnel-gateway": "#!/bin/sh\nprintf 'tunnel-gateway v1.2.3\\nconnectors docker.io/cloudflare/cloudflared:1.2.3\\nenvoy docker.io/envoyproxy/envoy:distroless-v1.2.3\\n'\n",
		"path/crane":         "#!/bin/sh\necho \"$2\" | sha256sum | sed 's/^/sha256:/; s/ .*//'\n",
	}
	output, problems, err := run(t, repository(t, files), "resolve-images")
	if err != nil {
		t.Fatal(err, problems)
	}
	names := []string{
		"GO_IMAGE=docker.io/library/golang:", "BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot@",
		"CONNECTOR_DIGEST=sha256:", "CONNECTOR_IMAGE=docker.io/cloudflare/cloudflared:1.2.3@",
		"ENVOY_DIGEST=sha256:", "ENVOY_IMAGE=docker.io/envoyproxy/envoy:distroless-v1.2.3@",
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if len(lines) != len(names) {
		t.Fatalf("got %q, want the outputs %q", lines, names)
	}
	for i, name := range names {
		if !strings.HasPrefix(lines[i], name) || !writtenDigest.MatchString(lines[i]) {
			t.Errorf("output %q, want %s… with a digest", lines[i], name)
		}
	}

	files["path/crane"] = "#!/bin/sh\necho unknown\n"
	if output, problems, err := run(t, repository(t, files), "resolve-images"); err == nil || !strings.Contains(problems, "unknown") {
		t.Errorf("an answer without a digest: got %q, %q and error %v, want an error", output, problems, err)
	}
}

// A program "gh" that prints its arguments, and knows the release v1.2.3.
const fakeGH = "#!/bin/sh\necho \"$@\"\n[ \"$2\" != view ] || [ \"$3\" = v1.2.3 ]\n"

func TestPluginIsPublishedOnce(t *testing.T) {
	files := map[string]string{"path/gh": fakeGH}
	names := []string{"plugin_linux_amd64.tar.gz", "plugin_windows_amd64.zip", "checksums.txt", "checksums.txt.sigstore.json", "tunnel-gateway.yaml"}
	var paths []string
	for _, name := range names {
		files["bin/plugin/"+name] = name
		paths = append(paths, "bin/plugin/"+name)
	}
	files["bin/plugin/bin/linux_amd64/kubectl-tunnel_gateway"] = "not in the release"
	directory := repository(t, files)
	for tag, want := range map[string]string{
		"v1.2.3":      "release upload v1.2.3 --clobber ",
		"v1.2.4":      "release create v1.2.4 --verify-tag --title v1.2.4 --notes [Changelog](https://github.com/tunnel-gateway/tunnel-gateway/blob/v1.2.4/CHANGELOG.md) ",
		"v1.2.4-rc.1": "release create v1.2.4-rc.1 --verify-tag --title v1.2.4-rc.1 --notes [Changelog](https://github.com/tunnel-gateway/tunnel-gateway/blob/v1.2.4-rc.1/CHANGELOG.md) --prerelease ",
	} {
		output, problems, err := run(t, directory, "publish-plugin", tag, "bin/plugin")
		if got, want := strings.TrimSpace(output), want+strings.Join(paths, " "); got != want || err != nil {
			t.Errorf("%s: error %v, gh was run with\n%s\nwant\n%s\n%s", tag, err, got, want, problems)
		}
	}
}
