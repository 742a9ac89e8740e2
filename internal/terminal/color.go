package terminal

// Escape sequences that set colors.
const (
	Bold  = "\x1b[1m"
	Red   = "\x1b[31m"
	Green = "\x1b[32m"
	Cyan  = "\x1b[36m"
	// Reset ends the effect of the others.
	Reset = "\x1b[m"
)

// Colors returns the escape sequences that set colors.
func Colors() []string { return []string{Bold, Red, Green, Cyan, Reset} }
