package controller

import (
	"maps"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// readyInterval is how long applications that become ready are collected. The tunnel's
// configuration is written at most once in this time because of them.
const readyInterval = 10 * time.Second

// maxReadyWait is how long an application that has become ready waits at most, because other
// changes can write the configuration again and again.
const maxReadyWait = 2 * readyInterval

// shownVerdicts are the verdicts that the decisions about a Gateway have seen.
type shownVerdicts struct {
	verdicts access.Verdicts
	// last is when they last got an application that had become ready, and waiting since
	// when such an application waits.
	last, waiting *time.Duration
}

// next returns what the next decision sees of the verdicts, and how long it does not see
// some of them; 0 if it sees all. lastWrite is the uptime at which the tunnel's configuration
// was last written, or nil.
//
// An application that has become ready is shown ten seconds after the last one, and after the
// last write, but waits at most twenty seconds. Every other change is shown at once.
func (s *shownVerdicts) next(all access.Verdicts, lastWrite *time.Duration, uptime time.Duration) (access.Verdicts, time.Duration) {
	ready := s.becomeReady(all)
	if len(ready) == 0 {
		s.verdicts, s.waiting = all, nil
		return all, 0
	}
	if s.waiting == nil {
		s.waiting = &uptime
	}
	until := time.Duration(0)
	for _, t := range []*time.Duration{s.last, lastWrite} {
		if t != nil {
			until = max(until, *t+readyInterval)
		}
	}
	if until = min(until, *s.waiting+maxReadyWait); uptime >= until {
		s.verdicts, s.last, s.waiting = all, &uptime, nil
		return all, 0
	}
	shown := maps.Clone(all)
	for _, hostname := range ready {
		if verdict, ok := s.verdicts[hostname]; ok {
			shown[hostname] = verdict
		} else {
			delete(shown, hostname)
		}
	}
	s.verdicts = shown
	return shown, until - uptime
}

// becomeReady returns the hostnames whose application is ready now, and of which no
// application was shown.
func (s *shownVerdicts) becomeReady(all access.Verdicts) (hostnames []string) {
	for hostname := range all {
		if verdict := all[hostname]; verdict.Reason == conditions.ReasonProtected && verdict.Application != nil && s.verdicts[hostname].Application == nil {
			hostnames = append(hostnames, hostname)
		}
	}
	return hostnames
}
