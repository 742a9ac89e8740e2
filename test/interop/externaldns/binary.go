package externaldns

import (
	"context"
	"io"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

const (
	programName = "external-dns"
	modulePath  = "sigs.k8s.io/external-dns"
)

// Binary returns the path to an external-dns binary in the version that binary/go.mod
// requires. The first call on a machine builds it, which takes minutes. Binary writes the
// build's output to progress.
func Binary(ctx context.Context, progress io.Writer) (string, error) {
	return binaries.Source{
		Name: programName, ImportPath: modulePath, BuildTime: "about four minutes",
		Module: "test/interop/externaldns/binary", VersionModule: modulePath,
		Flags: func(version string) []string {
			return []string{"-mod=readonly", "-trimpath", "-ldflags", "-s -w -X " + modulePath + "/pkg/apis/externaldns.Version=" + version}
		},
	}.Build(ctx, progress)
}
