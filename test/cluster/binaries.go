package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/toolbuild"
)

// controllerManagerName is the program that runs the controllers of Kubernetes.
const controllerManagerName = "kube-controller-manager"

// The modules whose required versions are the versions of the control plane.
const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
)

// controlPlane is the set of programs that a cluster runs.
var controlPlane = toolbuild.Set{
	Name:      "control plane",
	Module:    "test/cluster/binaries",
	BuildTime: "about six minutes",
	Programs: []toolbuild.Program{
		{Name: "kube-apiserver", ImportPath: "k8s.io/kubernetes/cmd/kube-apiserver"},
		{Name: controllerManagerName, ImportPath: "k8s.io/kubernetes/cmd/" + controllerManagerName},
		{Name: "etcd", ImportPath: etcdModule},
	},
	RequiredModules: []string{kubernetesModule, etcdModule},
	Plan: func(versions map[string]string) toolbuild.Plan {
		kubernetes, etcd := versions[kubernetesModule], versions[etcdModule]
		return toolbuild.Plan{
			Title: fmt.Sprintf("Kubernetes %s (API server and controller manager) with etcd %s", kubernetes, etcd),
			Key:   kubernetes + "-etcd-" + etcd,
			Flags: buildFlags(kubernetes),
		}
	},
}

// Binaries returns the directory that contains kube-apiserver,
// kube-controller-manager and etcd, in the versions that
// test/cluster/binaries/go.mod requires. The first call on a machine builds them
// into the user's cache directory, which takes about six minutes. All clones and
// processes share the result. Binaries reports its progress to progress.
//
// The working directory must be inside the repository.
func Binaries(ctx context.Context, progress io.Writer) (string, error) {
	return controlPlane.Build(ctx, progress)
}

// buildFlags returns the flags of `go build`. The linker sets the version of
// Kubernetes. The build date is fixed so that the build is reproducible.
func buildFlags(version string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	ldflags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, variable := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor,
			"buildDate=1970-01-01T00:00:00Z", "gitTreeState=archive",
		} {
			ldflags = append(ldflags, "-X", pkg+"."+variable)
		}
	}
	return []string{
		"-mod=readonly", "-trimpath", "-tags", "selinux,notest,grpcnotrace",
		"-ldflags", strings.Join(ldflags, " "),
	}
}
