package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// owner begins what is about one object, part what is about one of its
	// listeners, and line is a condition.
	owner = regexp.MustCompile(`^(Gateway|ListenerSet|HTTPRoute|GRPCRoute)\b.*:$`)
	part  = regexp.MustCompile(`^  listener .*:$`)
	line  = regexp.MustCompile(`^ +([A-Za-z./]+): "(True|False|Unknown) ([A-Za-z]+)`)
)

// kinds are the texts' names of what is in a golden file.
var kinds = map[string]string{"Gateway": "Gateway", "ListenerSet": "ListenerSet", "HTTPRoute": "Route", "GRPCRoute": "Route"}

var listenerKinds = map[string]string{"Gateway": "Gateway listener", "ListenerSet": "ListenerSet entry"}

// readCases returns what the golden cases say, each with one that says it.
func readCases(pattern string) (map[said]string, error) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no file %s", pattern)
	}
	all := map[said]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for s := range statements(string(content)) {
			all[s] = file
		}
	}
	return all, nil
}

// statements reads one golden file.
func statements(content string) map[said]bool {
	all := map[said]bool{}
	object, kind := "", ""
	for text := range strings.Lines(content) {
		text = strings.TrimSuffix(text, "\n")
		if begins := owner.FindStringSubmatch(text); begins != nil {
			object, kind = begins[1], kinds[begins[1]]
		}
		if part.MatchString(text) {
			kind = listenerKinds[object]
		}
		if c := line.FindStringSubmatch(text); c != nil {
			all[said{kind, c[1], c[2], c[3]}] = true
		}
	}
	return all
}
