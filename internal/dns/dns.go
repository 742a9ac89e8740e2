package dns

// Memory is what only this process knows about a zone. Its zero value is the Memory after
// a start.
type Memory struct {
	failures int
}

// Observe returns the Memory after the Facts were gathered. The controller calls it before
// each [Decide].
func Observe(f Facts) Memory { return f.Memory }

// Decide returns the next step for the zone.
func Decide(Facts) Step { return Step{Action: None} }

// Conclude returns the Memory after step s has returned result r.
func Conclude(m Memory, _ Step, r Result) Memory {
	if r.Err != nil {
		m.failures++
	}
	return m
}

// NewReport returns what the zone's records mean.
func NewReport(Facts) Report { return Report{} }

// Plan returns the changes that the controller would make with the zone's records as
// they are, as if no delay had to pass.
func Plan(Facts) []Change { return nil }
