package binaries

import (
	"context"
	"io"
)

// Collector returns the path to the OpenTelemetry collector. It builds the collector once
// per machine, and reports that to progress.
func Collector(ctx context.Context, progress io.Writer) (string, error) {
	return Source{
		Name: "collector", ImportPath: modulePath + "/test/binaries/collector", BuildTime: "about two minutes",
		Module: "test/binaries/collector", VersionModule: "go.opentelemetry.io/collector/otelcol",
		Flags: func(string) []string { return []string{"-mod=readonly", "-trimpath", "-ldflags", "-s -w"} },
	}.Build(ctx, progress)
}
