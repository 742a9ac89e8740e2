package main

import (
	"regexp"
	"slices"
)

// contributorPages are pages for readers who have built the program in a clone.
var contributorPages = []string{"CONTRIBUTING.md", "docs/architecture.md", "docs/contributing.md"}

// userCommand matches a command for users, with the word and the directory before it.
// The commands controller and version also run in the container image, which has no
// kubectl.
var userCommand = regexp.MustCompile(`([\w.-]+ )?([\w./-]*)\btunnel-gateway (plan|pause|resume|reconcile|rotate-token|wait|completion)\b`)

// builtProgram matches the program in a clone, and the command that installs it.
var builtProgram = regexp.MustCompile(`(?:^|[^\w/])(install )?bin/(tunnel-gateway|kubectl-tunnel_gateway)\b`)

// checkCommandNames reports commands that a page for users does not run as the kubectl
// plugin, and programs in a clone outside pages for contributors. A yaml block copies a
// file, for example a workflow that installs the program under another name.
func checkCommandNames(files []file) []finding {
	var findings []finding
	for _, p := range pagesOf(files) {
		if slices.Contains(contributorPages, p.path) {
			continue
		}
		for _, line := range p.lines {
			if line.language != "yaml" && namesOtherCommand(line.text) {
				findings = append(findings, finding{p.path, line.number, "a command for contributors or the container image; users run kubectl tunnel-gateway"})
			}
		}
	}
	return findings
}

func namesOtherCommand(line string) bool {
	for _, m := range builtProgram.FindAllStringSubmatch(line, -1) {
		if m[1] == "" {
			return true
		}
	}
	for _, m := range userCommand.FindAllStringSubmatch(line, -1) {
		if m[1] != "kubectl " || m[2] != "" {
			return true
		}
	}
	return false
}
