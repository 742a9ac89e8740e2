package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"sigs.k8s.io/gateway-api/pkg/consts"
)

// Set by the linker.
var (
	version = "development"
	commit  = "unknown"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "tunnel-gateway %s\ncommit %s\n%s\nGateway API %s\n",
				version, commit, runtime.Version(), consts.BundleVersion)
		},
	}
}
