package tunnel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var (
	errNoResponse = &provider.UnavailableError{Err: errors.New("connection reset")}
	errTooMany    = &provider.RateLimitedError{RetryAfter: 20 * time.Second}
	errBudget     = &provider.RateLimitedError{RetryAfter: 20 * time.Second, Budget: true}
	errAPIServer  = errors.New("the server is currently unable to handle the request")
)

// after changes the expected Memory of a row.
type after func(*Memory)

// concludeRow is one row of a golden table: Memory, step and result in, Memory
// out.
type concludeRow struct {
	name   string
	before change
	step   Step
	result Result
	// after changes the Memory as it was before to what is expected.
	after after
}

// conclude runs a golden table. The step ended at the uptime of the rows.
func conclude(t *testing.T, rows []concludeRow) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := serving()
			if r.before != nil {
				r.before(&f)
			}
			want := serving()
			if r.before != nil {
				r.before(&want)
			}
			r.after(&want.Memory)
			r.result.Uptime = uptime
			got := Conclude(f.Memory, r.step, r.result)
			if diff := cmp.Diff(want.Memory, got, cmp.AllowUnexported(Instant{}), cmp.FilterPath(isMessage, cmp.Ignore())); diff != "" {
				t.Errorf("unexpected Memory (-want +got):\n%s", diff)
			}
			for _, b := range got.Backoffs {
				if b.Problem != nil {
					checkSentence(t, "the problem", b.Problem.Message)
				}
			}
		})
	}
}

// isMessage selects the texts of problems, which rows do not repeat.
func isMessage(p cmp.Path) bool { return p.Last().String() == ".Message" }

func same(*Memory) {}

func both(changes ...after) after {
	return func(m *Memory) {
		for _, c := range changes {
			c(m)
		}
	}
}

// failed is the first failure of a track.
func failed(track Track, reason Reason, delay time.Duration) after {
	return func(m *Memory) {
		m.Backoffs[track] = Backoff{Failures: 1, Until: At(uptime + delay), Delay: delay, Problem: problem(reason, "")}
	}
}

// delayed is failed without a problem: another rule finds out what happened.
func delayed(track Track) after {
	return func(m *Memory) {
		m.Backoffs[track] = Backoff{Failures: 1, Until: At(uptime + time.Second), Delay: time.Second}
	}
}

// unwritten remembers that the write of the changed configuration failed.
func unwritten(m *Memory) { m.FailedWrite = changedConfiguration.Hash() }

func cleared(track Track) after { return func(m *Memory) { m.Backoffs[track] = Backoff{} } }

func lost(m *Memory) {
	m.Remote.Tunnel, m.Remote.Configuration, m.InEffect = RemoteTunnel{}, RemoteConfiguration{Missing: true}, ""
}

func present(m *Memory) {
	m.Remote.Tunnel = RemoteTunnel{Presence: Present, ID: ownID, Name: ownName, Read: At(uptime)}
}

func absent(m *Memory) { m.Remote.Tunnel = RemoteTunnel{Presence: Absent, Read: At(uptime)} }

func recording(changes ...func(*v1alpha1.TunnelStatus)) *v1alpha1.TunnelStatus {
	f := serving()
	for _, c := range changes {
		c(&f.Object.Status)
	}
	return &f.Object.Status
}

func TestConcludeFinding(t *testing.T) {
	found := provider.Tunnel{ID: ownID, Name: ownName}
	conclude(t, []concludeRow{
		{
			"a tunnel that was found is present from now on", tunnelNotFound,
			Step{Action: ReadTunnel}, Result{Tunnel: found},
			both(present, func(m *Memory) { m.Remote.Configuration.Missing = false }),
		},
		{
			"a tunnel that was found by its name is still to be compared with the recorded one", tunnelNotFound,
			Step{Action: FindByName}, Result{Tunnel: found}, present,
		},
		{
			"a locally managed tunnel is not known as present, and looked at again after a minute", tunnelNotFound,
			Step{Action: FindByName}, Result{Tunnel: provider.Tunnel{ID: ownID, Name: ownName, Local: true}},
			both(present, func(m *Memory) {
				m.Remote.Tunnel.Presence, m.Remote.Tunnel.Local = PresenceUnknown, true
				m.Backoffs[TrackTunnel] = Backoff{Until: At(uptime + time.Minute), Problem: problem(ReasonLocallyManaged, "")}
			}),
		},
		{
			"a locally managed tunnel is present for its deletion, which then says so", tunnelNotFound,
			Step{Action: ReadTunnel, Priority: provider.PriorityDeletion}, Result{Tunnel: provider.Tunnel{ID: ownID, Name: ownName, Local: true}},
			both(present, func(m *Memory) { m.Remote.Tunnel.Local, m.Remote.Configuration.Missing = true, false }),
		},
		{
			"a tunnel that no list has is absent, and that is no failure", tunnelNotFound,
			Step{Action: FindByName}, Result{Err: provider.ErrNotFound}, absent,
		},
		{
			"an existing tunnel that is not found is a problem for a person", tunnelNotFound,
			Step{Action: ReadTunnel}, Result{Err: provider.ErrNotFound}, both(absent, failed(TrackTunnel, ReasonTunnelMissing, time.Second)),
		},
		{
			"a tunnel whose API token is refused is not absent", nil,
			Step{Action: FindByName}, Result{Err: provider.ErrUnauthorized}, failed(TrackTunnel, ReasonUnauthorized, time.Second),
		},
		{
			"a tunnel about which Cloudflare does not answer is not absent", nil,
			Step{Action: ReadTunnel}, Result{Err: errNoResponse}, failed(TrackTunnel, ReasonUnavailable, time.Second),
		},
		{
			"a tunnel about which nothing may be asked is not absent", nil,
			Step{Action: ReadTunnel}, Result{Err: errTooMany}, failed(TrackTunnel, ReasonRateLimited, 20*time.Second),
		},
		{
			"a tunnel that is gone when its configuration is read has to be found again", nil,
			Step{Action: ReadConfiguration}, Result{Err: provider.ErrNotFound}, both(lost, delayed(TrackConfiguration)),
		},
		{
			"a tunnel that is gone when it is configured has to be found again", nil,
			Step{Action: Configure}, Result{Err: provider.ErrNotFound},
			both(lost, delayed(TrackConfiguration), func(m *Memory) { m.Push, m.FailedWrite = Pace{Last: At(uptime), Gap: minGap}, "" }),
		},
		{
			"a tunnel that is gone when its token is read has to be found again", nil,
			Step{Action: ReadToken}, Result{Err: provider.ErrNotFound}, both(lost, delayed(TrackToken)),
		},
		{
			"a tunnel that is gone when its connections are listed has to be found again", nil,
			Step{Action: ListConnections}, Result{Err: provider.ErrNotFound}, both(lost, delayed(TrackTunnel)),
		},
		{
			"a created tunnel is present and has an empty configuration", tunnelNotFound,
			Step{Action: Create, ReadInterval: time.Minute}, Result{Tunnel: found},
			both(present, func(m *Memory) {
				m.Created = At(uptime)
				m.Remote.Configuration = RemoteConfiguration{Known: true, Hash: provider.Configuration{}.Hash(), Settled: true, NextRead: uptime + time.Minute}
			}),
		},
		{
			"a create that was not answered may have succeeded", func(f *Facts) { absent(&f.Memory) },
			Step{Action: Create}, Result{Err: errNoResponse},
			both(failed(TrackTunnel, ReasonUnavailable, time.Second), func(m *Memory) { m.Created, m.Remote.Tunnel = At(uptime), RemoteTunnel{} }),
		},
		{
			"a create that waits for the request budget was not attempted", func(f *Facts) { absent(&f.Memory) },
			Step{Action: Create}, Result{Err: errBudget},
			func(m *Memory) {
				m.Backoffs[TrackTunnel] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true}}
			},
		},
		{
			"a name that exists already has to be found", func(f *Facts) { absent(&f.Memory) },
			Step{Action: Create}, Result{Err: provider.ErrNameExists},
			both(failed(TrackTunnel, ReasonFailed, time.Second), func(m *Memory) { m.Created, m.Remote.Tunnel = At(uptime), RemoteTunnel{} }),
		},
	})
}

func TestConcludeConfiguring(t *testing.T) {
	changed := Result{Configuration: changedConfiguration, Version: 8}
	configure := Step{Action: Configure, Hash: changedConfiguration.Hash(), ReadInterval: 10 * time.Minute}
	read := Step{Action: ReadConfiguration, ReadInterval: 10 * time.Minute}
	pushed := func(m *Memory) { m.Push = Pace{Last: At(uptime), Gap: minGap} }
	holds := func(m *Memory) {
		m.Remote.Configuration.Configuration, m.Remote.Configuration.Hash, m.Remote.Configuration.Version = changedConfiguration, changedConfiguration.Hash(), 8
		m.InEffect = changedConfiguration.Hash()
	}
	again := func(d time.Duration) after {
		return func(m *Memory) { m.Remote.Configuration.NextRead = uptime + d }
	}
	late := func(hashes ...string) change {
		return func(f *Facts) { f.Memory.Late = LateWrites{Hashes: hashes, Settled: At(uptime + 4*time.Second)} }
	}
	conclude(t, []concludeRow{
		{"a configuration that was written is in effect", nil, configure, changed, both(pushed, holds)},
		{
			"the gap between writes grows while changes keep coming",
			func(f *Facts) { f.Memory.Push = Pace{Last: At(uptime - time.Second), Gap: 300 * time.Millisecond} },
			configure, changed, both(holds, func(m *Memory) { m.Push = Pace{Last: At(uptime), Gap: 600 * time.Millisecond} }),
		},
		{
			"the gap between writes is never longer than a second",
			func(f *Facts) { f.Memory.Push = Pace{Last: At(uptime - time.Second), Gap: time.Second} },
			configure, changed, both(holds, func(m *Memory) { m.Push = Pace{Last: At(uptime), Gap: time.Second} }),
		},
		{
			"the gap is short again after a quiet time",
			func(f *Facts) { f.Memory.Push = Pace{Last: At(uptime - 2*time.Second), Gap: time.Second} },
			configure, changed, both(holds, pushed),
		},
		{
			"a write that was not the next version is read back: somebody else wrote in between", nil,
			configure, Result{Configuration: changedConfiguration, Version: 9},
			both(pushed, holds, func(m *Memory) { m.Remote.Configuration.Known, m.Remote.Configuration.Version = false, 9 }),
		},
		{
			"a write while an earlier one may still arrive is read back when that has settled", late("late"),
			configure, changed, both(pushed, holds, again(5*time.Second)),
		},
		{
			"a write after the late ones have settled ends their story",
			func(f *Facts) { f.Memory.Late = LateWrites{Hashes: []string{"late"}, Settled: At(uptime)} },
			configure, changed, both(pushed, holds, func(m *Memory) { m.Late = LateWrites{} }),
		},
		{
			"a write that was not answered may still arrive", nil, configure, Result{Err: errNoResponse},
			both(pushed, unwritten, failed(TrackConfiguration, ReasonUnavailable, time.Second), func(m *Memory) {
				m.Late = LateWrites{Hashes: []string{changedConfiguration.Hash()}, Settled: At(uptime + 10*time.Second)}
				m.InEffect, m.Remote.Configuration.Known = "", false
			}),
		},
		{
			"a write whose time was over may still arrive", nil, configure, Result{Err: fmt.Errorf("send the request: %w", context.DeadlineExceeded)},
			both(pushed, unwritten, failed(TrackConfiguration, ReasonFailed, time.Second), func(m *Memory) {
				m.Late = LateWrites{Hashes: []string{changedConfiguration.Hash()}, Settled: At(uptime + 10*time.Second)}
				m.InEffect, m.Remote.Configuration.Known = "", false
			}),
		},
		{
			"a write that the rate limit refused changed nothing", nil, configure, Result{Err: errTooMany},
			both(pushed, unwritten, failed(TrackConfiguration, ReasonRateLimited, 20*time.Second)),
		},
		{
			"a write that waits for the request budget was not sent", nil, configure, Result{Err: errBudget},
			func(m *Memory) {
				m.Backoffs[TrackConfiguration] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true}}
			},
		},
		{
			"a rejected configuration is remembered, and the old one is read back", nil, configure,
			Result{Err: &provider.InvalidError{Rule: 0, Message: "rule 1 has no service"}},
			both(pushed, unwritten, failed(TrackConfiguration, ReasonConfigurationRejected, time.Second), func(m *Memory) {
				m.Backoffs[TrackConfiguration].Hash, m.Remote.Configuration.Known = changedConfiguration.Hash(), false
			}),
		},
		{
			"a tunnel that turns out to be locally managed has no configuration in effect", nil, configure, Result{Err: provider.ErrLocallyManaged},
			both(pushed, unwritten, failed(TrackConfiguration, ReasonLocallyManaged, time.Second), func(m *Memory) {
				m.Remote.Configuration, m.InEffect = RemoteConfiguration{}, ""
			}),
		},
		{"a configuration that was read is in effect", nil, read, changed, both(holds, again(10*time.Minute))},
		{
			"the writes of an earlier process may still arrive after the first read", restarted,
			Step{Action: ReadConfiguration, ReadInterval: 10 * time.Minute, Unsettled: []string{"", "recorded"}}, changed,
			both(holds, again(11*time.Second), func(m *Memory) {
				m.Remote.Configuration.Known, m.Remote.Configuration.Settled = true, true
				m.Late = LateWrites{Hashes: []string{"recorded"}, Settled: At(uptime + 10*time.Second)}
			}),
		},
		{
			"the only write of an earlier process has arrived when its configuration is read", restarted,
			Step{Action: ReadConfiguration, ReadInterval: 10 * time.Minute, Unsettled: []string{"", changedConfiguration.Hash()}}, changed,
			both(holds, again(10*time.Minute), func(m *Memory) {
				m.Remote.Configuration.Known, m.Remote.Configuration.Settled = true, true
				m.Late = LateWrites{Hashes: []string{changedConfiguration.Hash()}, Settled: At(uptime + 10*time.Second)}
			}),
		},
		{
			"a read that fails leaves what is known", nil, read, Result{Err: errNoResponse}, failed(TrackConfiguration, ReasonUnavailable, time.Second),
		},
		{
			"a read of a known configuration that the rate limit refuses is postponed", nil, read, Result{Err: errTooMany}, again(20 * time.Second),
		},
		{
			"a read that waits for the request budget is postponed, and delays no change", nil,
			Step{Action: ReadConfiguration, Priority: provider.PriorityDrift}, Result{Err: errBudget},
			both(again(20*time.Second), func(m *Memory) {
				m.Backoffs[TrackConfiguration] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true, Priority: provider.PriorityDrift}}
			}),
		},
		{
			"an external change is counted when it is responded to", nil,
			Step{Action: Configure, Hash: changedConfiguration.Hash(), ReadInterval: 10 * time.Minute, ExternalChange: 7}, changed,
			both(pushed, holds, func(m *Memory) { m.Drift = Drift{Times: []Instant{At(uptime)}, Version: 7} }),
		},
		{
			"an external change is counted once, however often its repair is tried",
			func(f *Facts) { f.Memory.Drift = Drift{Times: []Instant{At(time.Minute)}, Version: 7} },
			Step{Action: Configure, Hash: changedConfiguration.Hash(), ReadInterval: 10 * time.Minute, ExternalChange: 7}, changed, both(pushed, holds),
		},
		{
			"a record that could not be written because the Tunnel had changed leaves everything as it was", nil,
			Step{Action: Configure, ExternalChange: 7}, Result{Stale: true}, same,
		},
	})
}

func TestConcludeDeleting(t *testing.T) {
	begun := recording(deleting)
	list := []provider.Connector{disconnected("a"), disconnected("b")}
	conclude(t, []concludeRow{
		{
			"a deleted tunnel is absent", nil, Step{Action: Delete, Record: begun}, Result{},
			func(m *Memory) {
				*m = Memory{CredentialsVersion: "1", Claimed: true, Token: m.Token, Deleted: At(uptime), Remote: Remote{Tunnel: RemoteTunnel{Presence: Absent, Read: At(uptime)}}}
			},
		},
		{
			"after a delete that failed nothing is known of the tunnel", nil, Step{Action: Delete}, Result{Err: errNoResponse},
			both(failed(TrackTunnel, ReasonUnavailable, time.Second), func(m *Memory) { m.Deleted, m.Remote, m.InEffect = At(uptime), Remote{}, "" }),
		},
		{
			"a delete that private network routes prevent is a problem for a person", nil, Step{Action: Delete}, Result{Err: provider.ErrRoutes},
			both(failed(TrackTunnel, ReasonPrivateRoutes, time.Second), func(m *Memory) { m.Deleted, m.Remote, m.InEffect = At(uptime), Remote{}, "" }),
		},
		{
			"a delete that connections prevent lists them again", nil, Step{Action: Delete}, Result{Err: provider.ErrConnected},
			both(failed(TrackTunnel, ReasonConnectorsConnected, time.Second), func(m *Memory) { m.Deleted, m.Remote, m.InEffect = At(uptime), Remote{}, "" }),
		},
		{
			"a delete that waits for the request budget was not attempted", nil, Step{Action: Delete, Priority: provider.PriorityDeletion}, Result{Err: errBudget},
			func(m *Memory) {
				m.Backoffs[TrackTunnel] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true, Priority: provider.PriorityDeletion}}
			},
		},
		{
			"the record that the deletion has begun counts as an attempt", connections(0, list...),
			Step{Action: Disconnect, Connector: "a", Record: begun}, Result{},
			func(m *Memory) { m.Deleted, m.Remote.Connections.Connectors = At(uptime), list[1:] },
		},
		{
			"a disconnected connector is not listed any more", connections(0, list...), Step{Action: Disconnect, Connector: "b"}, Result{},
			func(m *Memory) { m.Remote.Connections.Connectors = list[:1] },
		},
		{
			"connections are listed again after a connector could not be disconnected", connections(0, list...),
			Step{Action: Disconnect, Connector: "b"}, Result{Err: errNoResponse},
			both(failed(TrackTunnel, ReasonUnavailable, time.Second), func(m *Memory) { m.Remote.Connections = RemoteConnections{} }),
		},
		{
			"connections are listed", nil, Step{Action: ListConnections}, Result{Connectors: list},
			func(m *Memory) { m.Remote.Connections = RemoteConnections{Read: At(uptime), Connectors: list} },
		},
		{
			"connections are listed again after the connectors were stopped", connections(0, list...), Step{Action: StopConnectors}, Result{},
			func(m *Memory) { m.ConnectorsStopped, m.Remote.Connections = At(uptime), RemoteConnections{} },
		},
		{
			"connectors that could not be stopped were not stopped", nil, Step{Action: StopConnectors}, Result{Err: errAPIServer},
			failed(TrackConnectors, ReasonConnectorsFailed, time.Second),
		},
		{"withdrawn statuses stay withdrawn", nil, Step{Action: WithdrawStatuses}, Result{}, func(m *Memory) { m.StatusesWithdrawn = true }},
		{
			"statuses that could not be withdrawn have a backoff of their own", nil, Step{Action: WithdrawStatuses}, Result{Err: errAPIServer},
			failed(TrackStatuses, ReasonKubernetes, time.Second),
		},
		{"nothing is remembered of a Tunnel object that was deleted", nil, Step{Action: DeleteObject}, Result{}, func(m *Memory) { *m = Memory{} }},
		{
			"a Tunnel object that could not be deleted has a backoff of its own", nil, Step{Action: DeleteObject}, Result{Err: errAPIServer},
			failed(TrackObject, ReasonKubernetes, time.Second),
		},
	})
}

func TestConcludeClaiming(t *testing.T) {
	unconfirmed := func(f *Facts) { f.Memory.Claimed = false }
	conclude(t, []concludeRow{
		{"a claim with a record is confirmed by the list after it", unconfirmed, Step{Action: Claim, Record: recording()}, Result{}, func(m *Memory) { m.Claimed = true }},
		{"creating the object, or updating its spec, confirms no claim", unconfirmed, Step{Action: Claim}, Result{}, same},
		{
			"a claim that failed is not confirmed, although its record may be written", nil, Step{Action: Claim, Record: recording()}, Result{Err: errAPIServer},
			both(failed(TrackObject, ReasonKubernetes, time.Second), func(m *Memory) { m.Claimed = false }),
		},
		{
			"an update of the spec that failed leaves a confirmed claim", nil, Step{Action: Claim}, Result{Err: errAPIServer},
			failed(TrackObject, ReasonKubernetes, time.Second),
		},
		{
			"a record that was written ends the backoff of the object, and no other",
			all(failing(TrackObject, ReasonKubernetes, 0), failing(TrackTunnel, ReasonUnavailable, time.Second)),
			Step{Action: Record, Record: recording()}, Result{}, cleared(TrackObject),
		},
		{
			"a record that could not be written is tried again after a backoff", nil, Step{Action: Record, Record: recording()}, Result{Err: errAPIServer},
			failed(TrackObject, ReasonKubernetes, time.Second),
		},
		{
			"a record without a tunnel forgets its configuration and token", nil,
			Step{Action: Record, Record: recording(func(s *v1alpha1.TunnelStatus) { s.TunnelID = "" })}, Result{},
			func(m *Memory) {
				m.Remote.Configuration, m.Late, m.InEffect, m.Token = RemoteConfiguration{}, LateWrites{}, "", TokenCheck{}
			},
		},
		{
			"a record of the tunnel that was found ends the search",
			all(tunnelNotFound, tunnelRead(Present)), Step{Action: Record, Record: recording()}, Result{},
			func(m *Memory) { m.Remote.Configuration.Missing = false },
		},
	})
}

func TestConcludeTokens(t *testing.T) {
	conclude(t, []concludeRow{
		{
			"a token that was read is asked for again after the interval", func(f *Facts) { f.Memory.Token.Pending, f.Memory.Token.Suspect = true, true },
			Step{Action: ReadToken, ReadInterval: 20 * time.Hour}, Result{}, func(m *Memory) { m.Token = TokenCheck{NextCheck: At(uptime + 20*time.Hour)} },
		},
		{
			"after a rotation the new token is not in the Secret yet", nil, Step{Action: RotateToken}, Result{},
			func(m *Memory) { m.Token.Rotated, m.Token.Pending = At(uptime), true },
		},
		{
			"a rotation that waits for the request budget has not happened, whatever happened before",
			func(f *Facts) { f.Memory.Token.Rotated = At(time.Minute) }, Step{Action: RotateToken}, Result{Err: errBudget},
			func(m *Memory) {
				m.Token.Rotated = Instant{}
				m.Backoffs[TrackToken] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true}}
			},
		},
		{
			"a rotation that the rate limit refused has not happened", func(f *Facts) { f.Memory.Token.Rotated = At(time.Minute) },
			Step{Action: RotateToken}, Result{Err: errTooMany},
			both(failed(TrackToken, ReasonRateLimited, 20*time.Second), func(m *Memory) { m.Token.Rotated = Instant{} }),
		},
		{
			"a rotation that was not answered may still be applied", nil, Step{Action: RotateToken}, Result{Err: errNoResponse},
			both(failed(TrackToken, ReasonUnavailable, time.Second), func(m *Memory) { m.Token.Unanswered = At(uptime) }),
		},
		{
			"a rotation that was answered ends that", func(f *Facts) { f.Memory.Token.Unanswered = At(time.Minute) }, Step{Action: RotateToken}, Result{},
			func(m *Memory) {
				m.Token.Rotated, m.Token.Pending, m.Token.Unanswered = At(uptime), true, Instant{}
			},
		},
		{
			"a token Secret that belongs to another object is a problem for a person", nil, Step{Action: ReadToken},
			Result{Err: &Failure{Reason: ReasonObjectTaken, Err: errors.New("secret infra-shared belongs to another object")}},
			failed(TrackToken, ReasonObjectTaken, time.Second),
		},
		{
			"connectors that could not be applied say what the API server answered", nil, Step{Action: RunConnectors}, Result{Err: errAPIServer},
			failed(TrackConnectors, ReasonConnectorsFailed, time.Second),
		},
	})
}

func TestConcludeBackoff(t *testing.T) {
	read := Step{Action: FindByName}
	before := func(failures int) change {
		return func(f *Facts) { f.Memory.Backoffs[TrackTunnel].Failures = failures }
	}
	next := func(failures int, delay time.Duration, reason Reason) after {
		return both(failed(TrackTunnel, reason, delay), func(m *Memory) { m.Backoffs[TrackTunnel].Failures = failures })
	}
	conclude(t, []concludeRow{
		{"the wait doubles with each failure", before(1), read, Result{Err: errNoResponse}, next(2, 2*time.Second, ReasonUnavailable)},
		{"the wait is half a minute after the sixth failure", before(5), read, Result{Err: errNoResponse}, next(6, 32*time.Second, ReasonUnavailable)},
		{"the wait is never longer than a minute", before(6), read, Result{Err: errNoResponse}, next(6, time.Minute, ReasonUnavailable)},
		{
			"an outage lasts at least as long as the API asks to wait", nil, read,
			Result{Err: &provider.UnavailableError{Err: errors.New("502"), RetryAfter: 5 * time.Minute}}, next(1, 5*time.Minute, ReasonUnavailable),
		},
		{"a rate limit ends when the API says so, not later", before(6), read, Result{Err: errTooMany}, next(6, 20*time.Second, ReasonRateLimited)},
		{"a success ends the backoff of its track", before(4), read, Result{Tunnel: provider.Tunnel{ID: ownID, Name: ownName}}, both(cleared(TrackTunnel), present)},
		{"a wait changes nothing", before(4), Step{Action: Wait}, Result{}, same},
	})
}

func TestObserve(t *testing.T) {
	rows := []struct {
		name  string
		facts change
		after after
	}{
		{"nothing changes for a healthy Tunnel", nil, same},
		{"the first live read without the Gateway is noted", gatewayIs(GatewayGone), func(m *Memory) { m.MissingSince = At(uptime) }},
		{"a Gateway of another controller is noted as missing", gatewayIs(GatewayNotManaged), func(m *Memory) { m.MissingSince = At(uptime) }},
		{"later live reads do not move the first one", gone(20 * time.Second), same},
		{
			"a state that is unknown starts the retirement delay again",
			all(gone(20*time.Second), gatewayIs(GatewayUnknown)), func(m *Memory) { m.MissingSince = Instant{} },
		},
		{
			"a Gateway that returns ends the retirement",
			func(f *Facts) {
				f.Memory.MissingSince, f.Memory.ConnectorsStopped, f.Memory.StatusesWithdrawn = At(time.Minute), At(2*time.Minute), true
			},
			func(m *Memory) {
				m.MissingSince, m.ConnectorsStopped, m.StatusesWithdrawn = Instant{}, Instant{}, false
			},
		},
		{
			"new credentials end the backoffs at Cloudflare",
			all(failing(TrackTunnel, ReasonUnauthorized, time.Second), failing(TrackConfiguration, ReasonUnauthorized, time.Second),
				failing(TrackToken, ReasonUnauthorized, time.Second), failing(TrackConnectors, ReasonConnectorsFailed, time.Second),
				func(f *Facts) { f.Credentials.Version = "2" }),
			both(cleared(TrackTunnel), cleared(TrackConfiguration), cleared(TrackToken), func(m *Memory) { m.CredentialsVersion = "2" }),
		},
		{"credentials that are missing for a while are not new ones", credentials(CredentialsMissing), same},
		{
			"more live connectors than pods are noted", connections(0, live("a", 0), live("b", 0), live("c", 0)),
			func(m *Memory) { m.SurplusSince = At(uptime) },
		},
		{
			"as many live connectors as pods end that", all(crowded(time.Minute), connections(0, live("a", 0), live("b", 0), disconnected("c"))),
			func(m *Memory) { m.SurplusSince = Instant{} },
		},
		{
			"a pause forgets the external changes before it", all(paused, func(f *Facts) { f.Memory.Drift = Drift{Times: []Instant{At(time.Minute)}, Version: 7} }),
			func(m *Memory) { m.Drift = Drift{} },
		},
		{
			"a Tunnel object that is gone is forgotten, and what may still be under way is not",
			func(f *Facts) {
				f.Object = nil
				f.Memory.Created, f.Memory.Late = At(time.Minute), LateWrites{Hashes: []string{"late"}, Settled: At(2 * time.Minute)}
			},
			func(m *Memory) { *m = Memory{Created: m.Created, Late: m.Late, CredentialsVersion: "1"} },
		},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := serving()
			if r.facts != nil {
				r.facts(&f)
			}
			want := f.Memory
			r.after(&want)
			if diff := cmp.Diff(want, Observe(f), cmp.AllowUnexported(Instant{})); diff != "" {
				t.Errorf("unexpected Memory (-want +got):\n%s", diff)
			}
		})
	}
}
