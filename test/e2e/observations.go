package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// publicAPI is the public API's URL.
const publicAPI = "https://api.cloudflare.com/client/v4"

// observations are what a run has seen at Cloudflare, or in the simulator, by
// "<step>: <subject>". Each is a set of values, sorted. They contain nothing that differs
// between two runs, such as IDs and durations.
type observations map[string][]string

// simulated are what a run observes in the simulator. The test compares them
// with its own run, and writes them with -update.
//
//go:embed testdata/simulator.json
var simulated []byte

// observe records what the running step has seen.
func (s *scenario) observe(subject string, values ...string) {
	s.seen[s.step+": "+subject] = slices.Sorted(slices.Values(values))
}

// difference is an observation that differs from the simulator's.
type difference struct {
	subject string
	// simulator are the values that only the simulator has, and got the other ones.
	simulator, got []string
}

// compare returns how a run's observations differ from the simulator's, sorted by
// subject. A step that failed before it saw something
// causes none.
func compare(want, got observations) []difference {
	var differences []difference
	for _, subject := range slices.Sorted(maps.Keys(got)) {
		d := difference{subject, without(want[subject], got[subject]), without(got[subject], want[subject])}
		if len(d.simulator)+len(d.got) > 0 {
			differences = append(differences, d)
		}
	}
	return differences
}

// without returns the values that are not in others.
func without(values, others []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(others, v) })
}

// observeFields records all field names in the API's response for the path.
func (s *scenario) observeFields(ctx context.Context, subject, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.apiURL()+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API returned %s for %s: %.200s", response.Status, path, body)
	}
	var decoded any
	if err := json.Unmarshal(body, &decoded); err != nil {
		return fmt.Errorf("decode the response for %s: %w", path, err)
	}
	fields := map[string]bool{}
	addFields(fields, "", decoded)
	s.observe(subject, slices.Collect(maps.Keys(fields))...)
	return nil
}

// apiURL returns the API's URL.
func (a account) apiURL() string {
	if a.api == "" {
		return publicAPI
	}
	return strings.TrimSuffix(a.api, "/")
}

// addFields adds each field's path in the value, such as "result.connections[].id".
func addFields(fields map[string]bool, path string, value any) {
	empty := true
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			addFields(fields, strings.TrimPrefix(path+"."+name, "."), field)
			empty = false
		}
	case []any:
		path += "[]"
		for _, element := range v {
			addFields(fields, path, element)
			empty = false
		}
	}
	if empty {
		fields[path] = true
	}
}
