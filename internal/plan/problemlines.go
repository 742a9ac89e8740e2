package plan

import (
	"io"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// problemLines collects lines about problems, so that each text stands once, with all
// objects that have the problem.
type problemLines struct {
	texts    []string
	subjects map[string][]string
}

// add adds an object that has the problem. The text follows the object's name.
func (p *problemLines) add(subject, text string) {
	if p.subjects == nil {
		p.subjects = map[string][]string{}
	}
	if p.subjects[text] == nil {
		p.texts = append(p.texts, text)
	}
	p.subjects[text] = append(p.subjects[text], subject)
}

// write prints a line for each text, in the order in which they were added.
func (p *problemLines) write(out io.Writer, style Style) {
	for _, text := range p.texts {
		terminal.Printf(out, "%s%s"+problemMark+"\n", style.abbreviate(p.subjects[text]), text)
	}
}
