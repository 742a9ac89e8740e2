package integration

import (
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a forged record", lifecycle, Ordered, ContinueOnFailure, func() {
	forgeries := allForgeries()
	var s *siege

	// All attacks run in one world, so that the controller starts only twice.
	BeforeAll(func(ctx SpecContext) {
		s = newSiege(forgeries)
		s.start()
		s.serveVictims(ctx)
		s.attack(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return f.down }))
		s.attackWhileDown(ctx, slices.DeleteFunc(slices.Clone(forgeries), func(f *forgery) bool { return !f.down }))
	})

	for _, f := range forgeries {
		It("harms no other Gateway: "+f.String(), func() {
			damage := s.damage(f)
			harmless := func() { Expect(damage).To(BeEmpty()) }
			if reason, ok := successfulForgeries[f.String()]; ok {
				expectedToFail(reason, harmless)
				return
			}
			harmless()
		})
	}

	It("has no mark without an attack", func() {
		var names []string
		for _, f := range forgeries {
			names = append(names, f.String())
		}
		Expect(names).To(ContainElements(slices.Collect(maps.Keys(successfulForgeries))))
	})
})

// Why forged records succeed today.
const (
	namedByRecord   = "the controller deletes the tunnel whose name and ID the annotation of a deleted Gateway gives"
	accountByRecord = "the controller deletes the tunnel in the account that the annotation of a deleted Gateway gives"
	olderGateway    = "the older of two Gateways whose annotations name a tunnel gets its token and replaces its configuration"
)

// successfulForgeries are the attacks that succeed, by their names, with the
// reason. The fix of a defect deletes its attacks here.
var successfulForgeries = map[string]string{
	"created, own account, valid, deleted, before it starts again":        namedByRecord,
	"created, own account, invalid, deleted, while the controller runs":   namedByRecord,
	"created, own account, invalid, deleted, before it starts again":      namedByRecord,
	"created, own account, paused, deleted, while the controller runs":    namedByRecord,
	"created, own account, paused, deleted, before it starts again":       namedByRecord,
	"created, other account, invalid, deleted, while the controller runs": accountByRecord,
	"created, other account, invalid, deleted, before it starts again":    accountByRecord,
	"adopted, own account, valid, kept, while the controller runs":        olderGateway,
	"adopted, own account, valid, kept, before it starts again":           olderGateway,
	"adopted, own account, valid, deleted, while the controller runs":     olderGateway,
}

// expectedToFail runs the assertion about the outcome of a spec, which a known
// defect makes fail, and fails when the assertion passes. The fix of the defect
// replaces the call by the assertion.
//
// The body must contain nothing but that assertion: a failure of the setup must
// not be mistaken for the defect.
func expectedToFail(reason string, body func()) {
	GinkgoHelper()
	failure := InterceptGomegaFailure(body)
	Expect(failure).To(HaveOccurred(), "The assertion passes, so the mark has to be deleted. Its reason was: %s", reason)
	AddReportEntry("failed as expected", reason, ReportEntryVisibilityNever)
}

// stored is what the simulator stores for a tunnel.
type stored struct {
	tunnel        string // its ID
	configuration string
	version       int64
}

// stored reads what the simulator stores for the tunnel of that ID, which may be
// deleted.
func (w *world) stored(tunnel string) stored {
	configuration, version := w.edge.Document(tunnel)
	return stored{tunnel: tunnel, configuration: string(configuration), version: version}
}

// isLive reports whether the tunnel of that ID exists and is not deleted.
func (w *world) isLive(tunnel string) bool {
	for _, t := range w.edge.Tunnels() {
		if t.ID == tunnel {
			return !t.Deleted
		}
	}
	return false
}
