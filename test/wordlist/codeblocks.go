package main

// checkCodeBlocks reports console blocks. Commands are in sh blocks, which readers can
// copy, and their output is in text blocks.
func checkCodeBlocks(files []file) []finding {
	var findings []finding
	for _, p := range pagesOf(files) {
		for _, line := range p.lines {
			if line.opens && line.language == "console" {
				findings = append(findings, finding{p.path, line.number, "console block; use an sh block for the command and a text block for its output"})
			}
		}
	}
	return findings
}
