package convert

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// Request is a request whose answers can differ.
type Request struct {
	Host string `json:"host"`
	// Path is the decoded path without the query.
	Path string `json:"path"`
}

// String returns the host and the path, in one line.
func (r Request) String() string { return r.Host + escapePath(r.Path) }

// maxPaths limits the paths for one hostname, and maxWitnesses the paths for one
// expression.
const (
	maxPaths     = 200
	maxWitnesses = 24
)

// Requests returns requests that distinguish the rules: for each hostname of a rule and its
// neighbors, paths that each expression matches, and paths that it just does not match.
func (c *Configuration) Requests() []Request {
	var requests []Request
	seen := map[string]bool{}
	for i := range c.Rules {
		for _, host := range hostsFor(c.Rules[i].Hostname) {
			if seen[host] {
				continue
			}
			seen[host] = true
			for _, path := range c.pathsFor(host) {
				requests = append(requests, Request{host, path})
			}
		}
	}
	return requests
}

// hostsFor returns hosts that a rule's hostname matches, and hosts next to them.
func hostsFor(hostname string) []string {
	if isEveryHost(hostname) {
		return []string{"other.invalid"}
	}
	if other := punycode(hostname); other != "" {
		hostname = other
	}
	hostname = strings.ToLower(hostname)
	if suffix, ok := strings.CutPrefix(hostname, "*."); ok {
		return []string{"x." + suffix, "x.y." + suffix, suffix}
	}
	if strings.Contains(hostname, "*") {
		return nil // no request has such a host
	}
	return []string{hostname, "x." + hostname}
}

// pathsFor returns the paths for a host: those of the rules that can answer it.
func (c *Configuration) pathsFor(host string) []string {
	paths := []string{"/", "/other", "/a\nb"}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Path != "" && (isEveryHost(r.Hostname) || matchesHost(r.Hostname, host) || matchesHost(punycode(r.Hostname), host)) {
			paths = append(paths, witnesses(r.Path)...)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return paths[:min(len(paths), maxPaths)]
}

// witnesses returns paths that an expression matches, and similar ones.
func witnesses(expression string) []string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	compiled := regexp.MustCompile(expression)
	var paths []string
	for _, text := range examples(parsed) {
		for _, path := range variants(text) {
			if strings.HasPrefix(path, "/") {
				paths = append(paths, path)
			}
		}
	}
	// Matching paths first: they are what the rule is for.
	slices.SortStableFunc(paths, func(a, b string) int { return boolRank(compiled.MatchString(a)) - boolRank(compiled.MatchString(b)) })
	return paths[:min(len(paths), maxWitnesses)]
}

func boolRank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// variants returns a text and texts next to it, as paths.
func variants(text string) []string {
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	return []string{
		text, text + "/", text + "x", text + "/x", "/x" + text, text[:len(text)-1], strings.ToUpper(text), text + "\n", "/\n" + text,
	}
}

// maxExamples limits the texts for one part of an expression.
const maxExamples = 4

// examples returns texts that match the expression, if it has no assertions.
func examples(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCharClass:
		return []string{classExample(re.Rune)}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []string{"a"}
	case syntax.OpCapture, syntax.OpPlus:
		return examples(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		return limit(append([]string{""}, examples(re.Sub[0])...))
	case syntax.OpRepeat:
		var all []string
		for _, text := range examples(re.Sub[0]) {
			all = append(all, strings.Repeat(text, min(re.Min, maxExamples)))
		}
		return all
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			all = append(all, examples(sub)...)
		}
		return limit(all)
	case syntax.OpConcat:
		return concatenations(re.Sub)
	default:
		return []string{""}
	}
}

// concatenations returns texts for all parts one after the other.
func concatenations(parts []*syntax.Regexp) []string {
	all := []string{""}
	for _, part := range parts {
		var next []string
		for _, start := range all {
			for _, end := range examples(part) {
				next = append(next, start+end)
			}
		}
		all = limit(next)
	}
	return all
}

func limit(texts []string) []string { return texts[:min(len(texts), 2*maxExamples)] }

// classExample returns a character of a class, a printable one if there is one.
func classExample(ranges []rune) string {
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1] && r < unicode.MaxASCII; r++ {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '/' || r == '-' {
				return string(r)
			}
		}
	}
	if len(ranges) > 0 {
		return string(ranges[0])
	}
	return ""
}
