package integration

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// reportedSpecs limits the specs per part whose durations are reported. The slowest part
// determines how long the suite takes: see [parts].
const reportedSpecs = 8

var _ = ReportAfterSuite("durations", func(r Report) {
	specs := slices.SortedFunc(slices.Values(r.SpecReports), func(a, b types.SpecReport) int { return cmp.Compare(b.RunTime, a.RunTime) })
	fmt.Println() // the progress of the specs ends without a newline
	for _, spec := range specs[:min(reportedSpecs, len(specs))] {
		if spec.RunTime > time.Second {
			fmt.Printf("measured: %s: %s\n", spec.RunTime.Round(time.Second), spec.FullText())
		}
	}
})
