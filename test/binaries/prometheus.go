package binaries

import (
	"context"
	"io"
)

const prometheusModule = "github.com/prometheus/prometheus"

// Prometheus returns the path to Prometheus, in the version that the nested module
// prometheus requires. The first call on a machine builds it. Prometheus reports its
// progress to progress.
//
// The program finds its targets only in its configuration, in files and by HTTP. The
// clients of the clouds would take most of the time of the build. It has no user
// interface.
//
// The working directory must be inside the repository, or in a module that requires it.
func Prometheus(ctx context.Context, progress io.Writer) (string, error) {
	return Source{
		Name: "prometheus", ImportPath: prometheusModule + "/cmd/prometheus", BuildTime: "about two minutes",
		Module: "test/binaries/prometheus", VersionModule: prometheusModule,
		Flags: func(string) []string {
			return []string{"-mod=readonly", "-trimpath", "-tags", "remove_all_sd", "-ldflags", "-s -w"}
		},
	}.Build(ctx, progress)
}
