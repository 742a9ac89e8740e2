package plan

import "strings"

// line says which entry answers and how, with everything that happens to the request as
// details. The Entry is not nil.
func (a *Answer) line(style Style) Line {
	l := a.outcomeLine(style)
	if a.Failure != "" {
		l.add(problemLine("%s", withHints(a.Failure, a.Hints)))
	}
	if a.Access != nil {
		l.add(line("requires a token of Cloudflare Access: team %s, AUD tag %s", a.Access.TeamName, strings.Join(a.Access.AUDTag, " or ")))
	}
	if len(a.BypassThrough) > 0 {
		l.add(problemLine("without a token, requests with this host in another letter case or with a dot at its end can reach the rules for %s", strings.Join(a.BypassThrough, ", ")))
	}
	l.add(changeLines(a.Changes)...)
	for _, listener := range a.Via {
		l.add(line("attached to %s", listener))
	}
	return l
}

// add adds details.
func (l *Line) add(details ...Line) { l.Details = append(l.Details, details...) }

// outcomeLine says where the request ends, with the backends' details.
func (a *Answer) outcomeLine(style Style) Line {
	switch {
	case a.Location != "":
		l := line("Answered by %s -> %d %s", a.Entry, a.Status, a.Location)
		if a.RedirectLoop {
			l.add(problemLine("the redirect leads to the requested URL itself, so visitors get too many redirects"))
		}
		return l
	case a.Status != 0:
		return line("Answered by %s -> status %d", a.Entry, a.Status)
	case len(a.Backends) == 1:
		l := line("Answered by %s -> %s", a.Entry, a.Backends[0].Backend)
		l.add(a.Backends[0].details(style)...)
		return l
	}
	l := line("Answered by %s ->", a.Entry)
	for i := range a.Backends {
		share := &a.Backends[i]
		backend := line("%d %% %s", share.Percent, share.Backend)
		backend.add(share.details(style)...)
		l.add(backend)
	}
	return l
}

func changeLines(changes []string) []Line {
	var lines []Line
	for _, change := range changes {
		lines = append(lines, line("changed: %s", change))
	}
	return lines
}

// details are the changes for the backend, and its endpoints.
func (s *Share) details(style Style) []Line {
	lines, found := changeLines(s.Changes), s.Endpoints
	if found == nil {
		return lines
	}
	if s.ClusterIP != "" {
		lines = append(lines, line("Envoy connects to the ClusterIP %s", s.ClusterIP))
	}
	if len(found.Ready)+len(found.Terminating) == 0 {
		lines = append(lines, problemLine("no endpoint is ready"))
	}
	for _, list := range []struct {
		name      string
		addresses []string
	}{
		{"ready endpoints", found.Ready}, {"terminating endpoints", found.Terminating}, {"endpoints that are not ready", found.Unready},
	} {
		if len(list.addresses) > 0 {
			lines = append(lines, line("%s: %s", list.name, style.abbreviate(list.addresses)))
		}
	}
	return lines
}
