package externaldns

import (
	"context"
	"io"
	"path/filepath"

	"github.com/tunnel-gateway/tunnel-gateway/test/toolbuild"
)

const (
	programName = "external-dns"
	modulePath  = "sigs.k8s.io/external-dns"
)

// Binary returns the path of an external-dns binary in the version that
// binary/go.mod requires. The first call on a machine builds it, which takes
// minutes. Binary writes the output of the build to progress.
func Binary(ctx context.Context, progress io.Writer) (string, error) {
	set := toolbuild.Set{
		Name:            programName,
		Module:          "test/interop/externaldns/binary",
		BuildTime:       "about four minutes",
		Programs:        []toolbuild.Program{{Name: programName, ImportPath: modulePath}},
		RequiredModules: []string{modulePath},
		Plan: func(versions map[string]string) toolbuild.Plan {
			version := versions[modulePath]
			return toolbuild.Plan{
				Title: programName + " " + version,
				Key:   version,
				Flags: []string{
					"-mod=readonly", "-trimpath",
					"-ldflags", "-s -w -X " + modulePath + "/pkg/apis/externaldns.Version=" + version,
				},
			}
		},
	}
	dir, err := set.Build(ctx, progress)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, programName), nil
}
