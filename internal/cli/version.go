package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

// The linker sets these variables.
var (
	version = "development"
	commit  = "unknown"
)

// versionCommand returns the command version.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the tunnel-gateway, Go and Gateway API versions, and the connector and Envoy images",
		Args:  noArguments,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), versionText()) },
	}
}

// versionText returns what the command version and --version print.
func versionText() string {
	return fmt.Sprintf("tunnel-gateway %s\ncommit %s\n%s\nGateway API %s\nconnectors %s\nenvoy %s\n",
		version, commit, runtime.Version(), consts.BundleVersion, connector.DefaultImage(), connector.DefaultEnvoyImage())
}
