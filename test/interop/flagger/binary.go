package flagger

import (
	"context"
	"io"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

const modulePath = "github.com/fluxcd/flagger"

// Binary returns the path to a Flagger binary in the version that binary/go.mod requires.
// The first call on a machine builds it, which takes minutes. Binary writes the build's
// output to progress.
func Binary(ctx context.Context, progress io.Writer) (string, error) {
	return binaries.Source{
		Name: "flagger", ImportPath: modulePath + "/cmd/flagger", BuildTime: "about three minutes",
		Module: "test/interop/flagger/binary", VersionModule: modulePath,
		Flags: func(string) []string { return []string{"-mod=readonly", "-trimpath", "-ldflags", "-s -w"} },
	}.Build(ctx, progress)
}
