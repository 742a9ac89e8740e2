package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// goldenObject matches the line that begins an object in a golden status.
	goldenObject = regexp.MustCompile(`^(Gateway|ListenerSet|HTTPRoute|GRPCRoute|BackendTLSPolicy|AccessPolicy)\b.*:$`)
	// goldenListener matches the line that begins a listener in an object.
	goldenListener = regexp.MustCompile(`^  listener .*:$`)
	// goldenCondition matches a condition: type, status and reason.
	goldenCondition = regexp.MustCompile(`^ +([A-Za-z./]+): "(True|False|Unknown) ([A-Za-z]+)`)
)

// objectKinds maps object kinds in a golden status to kinds in the catalogue.
var objectKinds = map[string]string{
	"Gateway": "Gateway", "ListenerSet": "ListenerSet", "HTTPRoute": "Route", "GRPCRoute": "Route",
	"BackendTLSPolicy": "BackendTLSPolicy",
	"AccessPolicy":     "AccessPolicy",
}

// listenerKinds maps an object kind to its listener kind in the catalogue.
var listenerKinds = map[string]string{"Gateway": "Gateway listener", "ListenerSet": "ListenerSet entry"}

// readGoldenStatuses returns the reasons in the files that match the pattern,
// each with a file that contains it.
func readGoldenStatuses(pattern string) (map[reasonKey]string, error) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no file matches %s", pattern)
	}
	all := map[reasonKey]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for key := range parseGoldenStatus(string(content)) {
			all[key] = file
		}
	}
	return all, nil
}

// parseGoldenStatus returns the condition reasons in a golden status.
func parseGoldenStatus(content string) map[reasonKey]bool {
	all := map[reasonKey]bool{}
	object, kind := "", ""
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		if match := goldenObject.FindStringSubmatch(line); match != nil {
			object, kind = match[1], objectKinds[match[1]]
		}
		if goldenListener.MatchString(line) {
			kind = listenerKinds[object]
		}
		if match := goldenCondition.FindStringSubmatch(line); match != nil {
			all[reasonKey{kind: kind, condition: match[1], status: match[2], reason: match[3]}] = true
		}
	}
	return all
}
