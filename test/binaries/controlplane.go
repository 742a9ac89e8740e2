package binaries

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// The programs in a control plane.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Etcd              = "etcd"
)

const (
	// controlPlaneModule is the nested module that pins the versions.
	controlPlaneModule = "test/binaries/controlplane"
	kubernetesModule   = "k8s.io/kubernetes"
	etcdModule         = "go.etcd.io/etcd/server/v3"
)

// controlPlane are the programs in a control plane. The API server comes before
// kube-controller-manager, whose version depends on it.
var controlPlane = []Source{
	{
		Name: APIServer, ImportPath: "k8s.io/kubernetes/cmd/kube-apiserver", BuildTime: "about five minutes",
		Module: controlPlaneModule, VersionModule: kubernetesModule, Flags: kubernetesFlags,
	},
	{
		Name: ControllerManager, ImportPath: "k8s.io/kubernetes/cmd/kube-controller-manager", BuildTime: "about five minutes",
		Module: controlPlaneModule, VersionModule: kubernetesModule, Flags: kubernetesFlags,
	},
	{
		Name: Etcd, ImportPath: etcdModule, BuildTime: "about a minute",
		Module: controlPlaneModule, VersionModule: etcdModule, Flags: etcdFlags,
	},
}

// ControlPlane returns the paths to control plane programs, by name. It looks for each
// program separately: in the folder KUBEBUILDER_ASSETS, in the PATH and in the user's
// cache directory. It downloads the API server and etcd if it finds none, and builds only
// the programs from source that are still missing. It reports where each program comes
// from to progress.
//
// An installed program has the minor version that the nested module controlplane
// requires, or the next one. kube-controller-manager is not newer than the API server,
// which Kubernetes does not support.
//
// The working directory must be inside the repository, or in a module that requires it.
func ControlPlane(ctx context.Context, progress io.Writer, names ...string) (map[string]string, error) {
	return search{progress, defaultReleases}.controlPlane(ctx, names)
}

// search looks for control plane programs.
type search struct {
	progress io.Writer
	releases releases
}

func (s search) controlPlane(ctx context.Context, names []string) (map[string]string, error) {
	pinned, err := isPinned()
	if err != nil {
		return nil, err
	}
	missing, kubernetes, err := s.targets(ctx, names)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	if !pinned {
		missing = s.findInstalled(ctx, missing, found)
	}
	missing = s.findBuilt(missing, found)
	if !pinned {
		missing = s.findReleased(ctx, kubernetes, missing, found)
	}
	for _, t := range missing {
		if err := t.build(ctx); err != nil {
			return nil, err
		}
		found[t.Name] = t.path()
	}
	return found, nil
}

// targets returns the programs with the names, in the same order as controlPlane, and the
// required Kubernetes version.
func (s search) targets(ctx context.Context, names []string) (targets []*target, kubernetes *version.Version, err error) {
	root, err := Root(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, source := range controlPlane {
		t, err := source.target(root, s.progress)
		if err != nil {
			return nil, nil, err
		}
		if t.VersionModule == kubernetesModule {
			kubernetes = t.parsedVersion()
		}
		if slices.Contains(names, t.Name) {
			targets = append(targets, t)
		}
	}
	return targets, kubernetes, nil
}

func (t *target) parsedVersion() *version.Version { return version.MustParseSemantic(t.version) }

// findInstalled adds the installed programs to found, and returns the missing ones.
func (s search) findInstalled(ctx context.Context, targets []*target, found map[string]string) (missing []*target) {
	var later uint // by how many minor versions the installed API server is newer
	for _, t := range targets {
		required := newMinorRange(t.parsedVersion(), 1)
		if t.Name == ControllerManager {
			required = newMinorRange(t.parsedVersion(), later)
		}
		path, v := findInstalled(ctx, s.progress, t.Name, required)
		if path == "" {
			missing = append(missing, t)
			continue
		}
		found[t.Name] = path
		if t.Name == APIServer {
			later = v.Minor() - required.lowest
		}
	}
	return missing
}

// findBuilt adds the programs that were built before to found, and returns the missing
// ones.
func (s search) findBuilt(targets []*target, found map[string]string) []*target {
	return slices.DeleteFunc(targets, func(t *target) bool {
		if !t.entry.has(t.Name) {
			return false
		}
		reportFound(s.progress, t.Name, "the cache", t.path())
		found[t.Name] = t.path()
		return true
	})
}

// findReleased adds the programs that a release contains to found, and returns the
// missing ones. It downloads the release unless the cache contains it. If the
// download fails, it reports the failure, and the programs are missing.
func (s search) findReleased(ctx context.Context, kubernetes *version.Version, targets []*target, found map[string]string) []*target {
	if !slices.ContainsFunc(targets, func(t *target) bool { return slices.Contains(releasedPrograms, t.Name) }) {
		return targets
	}
	release, err := s.releases.find(ctx, s.progress, kubernetes)
	if err != nil {
		fmt.Fprintf(s.progress, "the download failed: %v\n", err)
		return targets
	}
	return slices.DeleteFunc(targets, func(t *target) bool {
		if !release.has(t.Name) {
			return false
		}
		from := candidate{filepath.Join(release.dir, t.Name), "a release in the cache"}
		if from.accept(ctx, s.progress, t.Name, newMinorRange(t.parsedVersion(), 1)) == nil {
			return false
		}
		found[t.Name] = from.path
		return true
	})
}

// kubernetesFlags returns flags for `go build`. The linker sets the Kubernetes version.
// The build date is fixed so that the build is reproducible.
func kubernetesFlags(version string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	var variables []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, variable := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor,
			"buildDate=1970-01-01T00:00:00Z", "gitTreeState=archive",
		} {
			variables = append(variables, "-X", pkg+"."+variable)
		}
	}
	return append(etcdFlags(version), "-tags", "selinux,notest,grpcnotrace", "-ldflags", "-s -w "+strings.Join(variables, " "))
}

func etcdFlags(string) []string { return []string{"-mod=readonly", "-trimpath", "-ldflags", "-s -w"} }
