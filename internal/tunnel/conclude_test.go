package tunnel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

var (
	errNoResponse = &provider.UnavailableError{Err: errors.New("connection reset")}
	errTooMany    = &provider.RateLimitedError{RetryAfter: 20 * time.Second}
	errBudget     = &provider.RateLimitedError{RetryAfter: 20 * time.Second, Budget: true}
	errAPIServer  = errors.New("the server is currently unable to handle the request")
)

// after changes the expected Memory in a row.
type after func(*Memory)

// concludeRow is one row in a golden table: it maps a Memory, a step and a result to
// the next Memory.
type concludeRow struct {
	name   string
	before change
	step   Step
	result Result
	// after changes the previous Memory to the expected Memory.
	after after
}

// testConclude runs a golden table. The step ends at the rows' uptime.
func testConclude(t *testing.T, rows []concludeRow) {
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
			if diff := cmp.Diff(want.Memory, got, cmp.AllowUnexported(Instant{}), comparableReasons, cmp.FilterPath(isMessage, cmp.Ignore())); diff != "" {
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

// isMessage selects problem messages, which rows omit.
func isMessage(p cmp.Path) bool { return p.Last().String() == ".Message" }

func unchanged(*Memory) {}

func allOf(changes ...after) after {
	return func(m *Memory) {
		for _, c := range changes {
			c(m)
		}
	}
}

// failed expects a track's first failure.
func failed(track Track, reason conditions.Reason, delay time.Duration) after {
	return func(m *Memory) {
		m.Backoffs[track] = Backoff{Failures: 1, Until: At(uptime + delay), Delay: delay, Problem: problem(reason, "")}
	}
}

// delayed expects a first failure without a problem, because another rule finds the cause.
func delayed(track Track) after {
	return func(m *Memory) {
		m.Backoffs[track] = Backoff{Failures: 1, Until: At(uptime + time.Second), Delay: time.Second}
	}
}

// writeFailed expects that writing the changed configuration failed.
func writeFailed(m *Memory) { m.FailedWrite = changedConfiguration.Hash() }

func cleared(track Track) after { return func(m *Memory) { m.Backoffs[track] = Backoff{} } }

func tunnelLost(m *Memory) {
	m.Remote.Tunnel, m.Remote.Configuration, m.InEffect = RemoteTunnel{}, RemoteConfiguration{Missing: true}, ""
}

func tunnelPresent(m *Memory) {
	m.Remote.Tunnel = RemoteTunnel{Presence: Present, ID: testTunnelID, Name: testTunnelName, Read: At(uptime)}
}

func tunnelAbsent(m *Memory) { m.Remote.Tunnel = RemoteTunnel{Presence: Absent, Read: At(uptime)} }

func recording(changes ...func(*v1alpha1.TunnelStatus)) *v1alpha1.TunnelStatus {
	f := serving()
	for _, c := range changes {
		c(&f.Object.Status)
	}
	return &f.Object.Status
}

func TestConcludeFindingATunnel(t *testing.T) {
	found := provider.Tunnel{ID: testTunnelID, Name: testTunnelName}
	testConclude(t, []concludeRow{
		{
			"a tunnel that was read is present", tunnelNotFound,
			Step{Action: ReadTunnel}, Result{Tunnel: found},
			allOf(tunnelPresent, func(m *Memory) { m.Remote.Configuration.Missing = false }),
		},
		{
			"a tunnel that was found by name must still be compared with the record", tunnelNotFound,
			Step{Action: FindByName}, Result{Tunnel: found}, tunnelPresent,
		},
		{
			"a locally managed tunnel is not treated as present, and read again after a minute", tunnelNotFound,
			Step{Action: FindByName}, Result{Tunnel: provider.Tunnel{ID: testTunnelID, Name: testTunnelName, Local: true}},
			allOf(tunnelPresent, func(m *Memory) {
				m.Remote.Tunnel.Presence, m.Remote.Tunnel.Local = PresenceUnknown, true
				m.Backoffs[TrackTunnel] = Backoff{Until: At(uptime + time.Minute), Problem: problem(conditions.ReasonLocallyManaged, "")}
			}),
		},
		{
			"a locally managed tunnel is present for its deletion, which reports the problem", tunnelNotFound,
			Step{Action: ReadTunnel, Priority: provider.PriorityDeletion}, Result{Tunnel: provider.Tunnel{ID: testTunnelID, Name: testTunnelName, Local: true}},
			allOf(tunnelPresent, func(m *Memory) { m.Remote.Tunnel.Local, m.Remote.Configuration.Missing = true, false }),
		},
		{
			"a tunnel that is not listed is absent, which is not a failure", tunnelNotFound,
			Step{Action: FindByName}, Result{Err: provider.ErrNotFound}, tunnelAbsent,
		},
		{
			"an existing tunnel that is not found is a problem that requires a user", tunnelNotFound,
			Step{Action: ReadTunnel}, Result{Err: provider.ErrNotFound}, allOf(tunnelAbsent, failed(TrackTunnel, conditions.ReasonTunnelMissing, time.Second)),
		},
		{
			"a tunnel is not absent when Cloudflare rejects the API token", nil,
			Step{Action: FindByName}, Result{Err: provider.ErrUnauthorized}, failed(TrackTunnel, conditions.ReasonUnauthorized, time.Second),
		},
		{
			"a tunnel is not absent when the Cloudflare API is unavailable", nil,
			Step{Action: ReadTunnel}, Result{Err: errNoResponse}, failed(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second),
		},
		{
			"a tunnel is not absent when the rate limit is reached", nil,
			Step{Action: ReadTunnel}, Result{Err: errTooMany}, failed(TrackTunnel, conditions.ReasonRateLimited, 20*time.Second),
		},
		{
			"a tunnel that is gone when its configuration is read must be found again", nil,
			Step{Action: ReadConfiguration}, Result{Err: provider.ErrNotFound}, allOf(tunnelLost, delayed(TrackConfiguration)),
		},
		{
			"a tunnel that is gone when it is configured must be found again", nil,
			Step{Action: Configure}, Result{Err: provider.ErrNotFound},
			allOf(tunnelLost, delayed(TrackConfiguration), func(m *Memory) { m.Push, m.FailedWrite = Pace{Last: At(uptime), Gap: minGap}, "" }),
		},
		{
			"a tunnel that is gone when its token is read must be found again", nil,
			Step{Action: ReadToken}, Result{Err: provider.ErrNotFound}, allOf(tunnelLost, delayed(TrackToken)),
		},
		{
			"a tunnel that is gone when its connections are listed must be found again", nil,
			Step{Action: ListConnections}, Result{Err: provider.ErrNotFound}, allOf(tunnelLost, delayed(TrackTunnel)),
		},
		{
			"a created tunnel is present and has an empty configuration", tunnelNotFound,
			Step{Action: Create, ReadInterval: time.Minute}, Result{Tunnel: found},
			allOf(tunnelPresent, func(m *Memory) {
				m.Created = At(uptime)
				m.Remote.Configuration = RemoteConfiguration{Known: true, Hash: provider.Configuration{}.Hash(), Settled: true, Confirmed: true, NextRead: uptime + time.Minute}
			}),
		},
		{
			"a create without a response may have succeeded", func(f *Facts) { tunnelAbsent(&f.Memory) },
			Step{Action: Create}, Result{Err: errNoResponse},
			allOf(failed(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second), func(m *Memory) { m.Created, m.Remote.Tunnel = At(uptime), RemoteTunnel{} }),
		},
		{
			"a create that waits for the API request budget was not attempted", func(f *Facts) { tunnelAbsent(&f.Memory) },
			Step{Action: Create}, Result{Err: errBudget},
			func(m *Memory) {
				m.Backoffs[TrackTunnel] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true}}
			},
		},
		{
			"a tunnel whose name already exists must be found", func(f *Facts) { tunnelAbsent(&f.Memory) },
			Step{Action: Create}, Result{Err: provider.ErrNameExists},
			allOf(failed(TrackTunnel, conditions.ReasonFailed, time.Second), func(m *Memory) { m.Created, m.Remote.Tunnel = At(uptime), RemoteTunnel{} }),
		},
	})
}

func TestConcludeConfiguringATunnel(t *testing.T) {
	changed := Result{Configuration: changedConfiguration, Version: 8}
	configure := Step{Action: Configure, Hash: changedConfiguration.Hash(), ReadInterval: 10 * time.Minute}
	limitedConfigure := configure
	limitedConfigure.Limit = UpdateLimit{Burst: 3, Interval: 20 * time.Second}
	read := Step{Action: ReadConfiguration, ReadInterval: 10 * time.Minute}
	pushed := func(m *Memory) { m.Push = Pace{Last: At(uptime), Gap: minGap} }
	inEffect := func(m *Memory) {
		m.Remote.Configuration.Configuration, m.Remote.Configuration.Hash, m.Remote.Configuration.Version = changedConfiguration, changedConfiguration.Hash(), 8
		m.InEffect = changedConfiguration.Hash()
	}
	rereadAfter := func(d time.Duration) after {
		return func(m *Memory) { m.Remote.Configuration.NextRead = uptime + d }
	}
	late := func(hashes ...string) change {
		return func(f *Facts) { f.Memory.LateWrites = LateWrites{Hashes: hashes, Settled: At(uptime + 4*time.Second)} }
	}
	testConclude(t, []concludeRow{
		{"a configuration that was written is in effect", nil, configure, changed, allOf(pushed, inEffect)},
		{
			"the gap between writes grows while changes keep coming",
			func(f *Facts) { f.Memory.Push = Pace{Last: At(uptime - time.Second), Gap: 300 * time.Millisecond} },
			configure, changed, allOf(inEffect, func(m *Memory) { m.Push = Pace{Last: At(uptime), Gap: 600 * time.Millisecond} }),
		},
		{
			"the gap between writes is never longer than a second",
			func(f *Facts) { f.Memory.Push = Pace{Last: At(uptime - time.Second), Gap: time.Second} },
			configure, changed, allOf(inEffect, func(m *Memory) { m.Push = Pace{Last: At(uptime), Gap: time.Second} }),
		},
		{
			"the gap is short again after a time without writes",
			func(f *Facts) { f.Memory.Push = Pace{Last: At(uptime - 2*time.Second), Gap: time.Second} },
			configure, changed, allOf(inEffect, pushed),
		},
		{
			"a write takes a token", limited, limitedConfigure, changed,
			allOf(pushed, inEffect, func(m *Memory) { m.Updates = Bucket{Spent: 1, Since: At(uptime)} }),
		},
		{
			"a write takes a token and keeps the part of the next token that has accrued", combine(limited, spent(2, 25*time.Second)), limitedConfigure, changed,
			allOf(pushed, inEffect, func(m *Memory) { m.Updates = Bucket{Spent: 2, Since: At(uptime - 5*time.Second)} }),
		},
		{
			"a write without a limit takes no token", spent(2, time.Second), configure, changed,
			allOf(pushed, inEffect, func(m *Memory) { m.Updates = Bucket{} }),
		},
		{
			"the configuration is read again after another write in between", nil,
			configure, Result{Configuration: changedConfiguration, Version: 9},
			allOf(pushed, inEffect, func(m *Memory) { m.Remote.Configuration.Known, m.Remote.Configuration.Version = false, 9 }),
		},
		{
			"the configuration is read again when an earlier write can no longer be applied", late("late"),
			configure, changed, allOf(pushed, inEffect, rereadAfter(5*time.Second), func(m *Memory) { m.Remote.Configuration.Confirmed = false }),
		},
		{
			"a write resets the late writes when they can no longer be applied",
			func(f *Facts) { f.Memory.LateWrites = LateWrites{Hashes: []string{"late"}, Settled: At(uptime)} },
			configure, changed, allOf(pushed, inEffect, func(m *Memory) { m.LateWrites = LateWrites{} }),
		},
		{
			"a write without a response may still be applied", nil, configure, Result{Err: errNoResponse},
			allOf(pushed, writeFailed, failed(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Second), func(m *Memory) {
				m.LateWrites = LateWrites{Hashes: []string{changedConfiguration.Hash()}, Settled: At(uptime + 10*time.Second)}
				m.InEffect, m.Remote.Configuration.Known = "", false
			}),
		},
		{
			"a write that timed out may still be applied", nil, configure, Result{Err: fmt.Errorf("send the request: %w", context.DeadlineExceeded)},
			allOf(pushed, writeFailed, failed(TrackConfiguration, conditions.ReasonFailed, time.Second), func(m *Memory) {
				m.LateWrites = LateWrites{Hashes: []string{changedConfiguration.Hash()}, Settled: At(uptime + 10*time.Second)}
				m.InEffect, m.Remote.Configuration.Known = "", false
			}),
		},
		{
			"a write that was rejected by the rate limit changed nothing", nil, configure, Result{Err: errTooMany},
			allOf(pushed, writeFailed, failed(TrackConfiguration, conditions.ReasonRateLimited, 20*time.Second)),
		},
		{
			"a write that waits for the API request budget was not sent", nil, configure, Result{Err: errBudget},
			func(m *Memory) {
				m.Backoffs[TrackConfiguration] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true}}
			},
		},
		{
			"a rejected configuration is remembered, and the previous configuration is read", nil, configure,
			Result{Err: &provider.InvalidError{Rule: 0, Message: "rule 1 has no service"}},
			allOf(pushed, writeFailed, failed(TrackConfiguration, conditions.ReasonConfigurationRejected, time.Second), func(m *Memory) {
				m.Backoffs[TrackConfiguration].Hash, m.Remote.Configuration.Known = changedConfiguration.Hash(), false
			}),
		},
		{
			"a locally managed tunnel has no configuration in effect", nil, configure, Result{Err: provider.ErrLocallyManaged},
			allOf(pushed, writeFailed, failed(TrackConfiguration, conditions.ReasonLocallyManaged, time.Second), func(m *Memory) {
				m.Remote.Configuration, m.InEffect = RemoteConfiguration{}, ""
			}),
		},
		{"a configuration that was read is in effect", nil, read, changed, allOf(inEffect, rereadAfter(10*time.Minute))},
		{
			"the writes of a previous process may still be applied after the first read", restarted,
			Step{Action: ReadConfiguration, ReadInterval: 10 * time.Minute, Unsettled: []string{"", "recorded"}}, changed,
			allOf(inEffect, rereadAfter(11*time.Second), func(m *Memory) {
				m.Remote.Configuration.Known, m.Remote.Configuration.Settled = true, true
				m.LateWrites = LateWrites{Hashes: []string{"recorded"}, Settled: At(uptime + 10*time.Second)}
			}),
		},
		{
			"the only write of a previous process was applied if its configuration is read", restarted,
			Step{Action: ReadConfiguration, ReadInterval: 10 * time.Minute, Unsettled: []string{"", changedConfiguration.Hash()}}, changed,
			allOf(inEffect, rereadAfter(10*time.Minute), func(m *Memory) {
				m.Remote.Configuration.Known, m.Remote.Configuration.Settled = true, true
				m.LateWrites = LateWrites{Hashes: []string{changedConfiguration.Hash()}, Settled: At(uptime + 10*time.Second)}
			}),
		},
		{
			"a failed read keeps the known configuration", nil, read, Result{Err: errNoResponse}, failed(TrackConfiguration, conditions.ReasonCloudflareUnavailable, time.Second),
		},
		{
			"the read of a known configuration is postponed by the rate limit", nil, read, Result{Err: errTooMany}, rereadAfter(20 * time.Second),
		},
		{
			"a read that waits for the API request budget is postponed and delays no change", nil,
			Step{Action: ReadConfiguration, Priority: provider.PriorityDrift}, Result{Err: errBudget},
			allOf(rereadAfter(20*time.Second), func(m *Memory) {
				m.Backoffs[TrackConfiguration] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true, Priority: provider.PriorityDrift}}
			}),
		},
		{
			"an external change is counted when it is responded to", nil,
			Step{Action: Configure, Hash: changedConfiguration.Hash(), ReadInterval: 10 * time.Minute, ExternalChange: 7}, changed,
			allOf(pushed, inEffect, func(m *Memory) { m.Drift = Drift{Times: []Instant{At(uptime)}, Version: 7} }),
		},
		{
			"an external change is counted once even if its repair is retried",
			func(f *Facts) { f.Memory.Drift = Drift{Times: []Instant{At(time.Minute)}, Version: 7} },
			Step{Action: Configure, Hash: changedConfiguration.Hash(), ReadInterval: 10 * time.Minute, ExternalChange: 7}, changed, allOf(pushed, inEffect),
		},
		{
			"a conflict when writing the record changes nothing", nil,
			Step{Action: Configure, ExternalChange: 7}, Result{Stale: true}, unchanged,
		},
	})
}

func TestConcludeDeletingATunnel(t *testing.T) {
	deletionBegun := recording(deleting)
	list := []provider.Connector{disconnected("a"), disconnected("b")}
	testConclude(t, []concludeRow{
		{
			"a deleted tunnel is absent", nil, Step{Action: Delete, Record: deletionBegun}, Result{},
			func(m *Memory) {
				*m = Memory{CredentialsVersion: "1", Claimed: true, Token: m.Token, Deleted: At(uptime), Remote: Remote{Tunnel: RemoteTunnel{Presence: Absent, Read: At(uptime)}}}
			},
		},
		{
			"the state of the tunnel is unknown after a failed delete", nil, Step{Action: Delete}, Result{Err: errNoResponse},
			allOf(failed(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second), func(m *Memory) { m.Deleted, m.Remote, m.InEffect = At(uptime), Remote{}, "" }),
		},
		{
			"private network routes that prevent a delete are a problem that requires a user", nil, Step{Action: Delete}, Result{Err: provider.ErrRoutes},
			allOf(failed(TrackTunnel, conditions.ReasonPrivateRoutes, time.Second), func(m *Memory) { m.Deleted, m.Remote, m.InEffect = At(uptime), Remote{}, "" }),
		},
		{
			"connections that prevent a delete are listed again", nil, Step{Action: Delete}, Result{Err: provider.ErrConnected},
			allOf(failed(TrackTunnel, conditions.ReasonConnectorsConnected, time.Second), func(m *Memory) { m.Deleted, m.Remote, m.InEffect = At(uptime), Remote{}, "" }),
		},
		{
			"a delete that waits for the API request budget was not attempted", nil, Step{Action: Delete, Priority: provider.PriorityDeletion}, Result{Err: errBudget},
			func(m *Memory) {
				m.Backoffs[TrackTunnel] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true, Priority: provider.PriorityDeletion}}
			},
		},
		{
			"recording the start of a deletion counts as an attempt", connections(0, list...),
			Step{Action: Disconnect, Connector: "a", Record: deletionBegun}, Result{},
			func(m *Memory) { m.Deleted, m.Remote.Connections.Connectors = At(uptime), list[1:] },
		},
		{
			"a disconnected connector is removed from the list", connections(0, list...), Step{Action: Disconnect, Connector: "b"}, Result{},
			func(m *Memory) { m.Remote.Connections.Connectors = list[:1] },
		},
		{
			"connections are listed again after a failed disconnect", connections(0, list...),
			Step{Action: Disconnect, Connector: "b"}, Result{Err: errNoResponse},
			allOf(failed(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second), func(m *Memory) { m.Remote.Connections = RemoteConnections{} }),
		},
		{
			"connections are listed", nil, Step{Action: ListConnections}, Result{Connectors: list},
			func(m *Memory) { m.Remote.Connections = RemoteConnections{Read: At(uptime), Connectors: list} },
		},
		{
			"connections are listed again after a stop of the connectors", connections(0, list...), Step{Action: StopConnectors}, Result{},
			func(m *Memory) { m.ConnectorsStopped, m.Remote.Connections = At(uptime), RemoteConnections{} },
		},
		{
			"a failed stop of the connectors does not count as stopped", nil, Step{Action: StopConnectors}, Result{Err: errAPIServer},
			failed(TrackConnectors, conditions.ReasonConnectorsFailed, time.Second),
		},
		{"withdrawn statuses are remembered", nil, Step{Action: WithdrawStatuses}, Result{}, func(m *Memory) { m.StatusesWithdrawn = true }},
		{
			"a failed withdrawal of statuses has a separate backoff", nil, Step{Action: WithdrawStatuses}, Result{Err: errAPIServer},
			failed(TrackStatuses, conditions.ReasonKubernetesUnavailable, time.Second),
		},
		{"the Memory is reset after the deletion of the Tunnel object", nil, Step{Action: DeleteObject}, Result{}, func(m *Memory) { *m = Memory{} }},
		{
			"a failed deletion of the Tunnel object has a separate backoff", nil, Step{Action: DeleteObject}, Result{Err: errAPIServer},
			failed(TrackObject, conditions.ReasonKubernetesUnavailable, time.Second),
		},
	})
}

func TestConcludeClaimsAndRecords(t *testing.T) {
	unconfirmed := func(f *Facts) { f.Memory.Claimed = false }
	testConclude(t, []concludeRow{
		{"a claim with a record is confirmed by the list that follows", unconfirmed, Step{Action: Claim, Record: recording()}, Result{}, func(m *Memory) { m.Claimed = true }},
		{"creating or updating the object does not confirm a claim", unconfirmed, Step{Action: Claim}, Result{}, unchanged},
		{
			"a failed claim is not confirmed, even if its record was written", nil, Step{Action: Claim, Record: recording()}, Result{Err: errAPIServer},
			allOf(failed(TrackObject, conditions.ReasonKubernetesUnavailable, time.Second), func(m *Memory) { m.Claimed = false }),
		},
		{
			"a failed update of the spec keeps a confirmed claim", nil, Step{Action: Claim}, Result{Err: errAPIServer},
			failed(TrackObject, conditions.ReasonKubernetesUnavailable, time.Second),
		},
		{
			"a written record resets only the backoff of the object",
			combine(failing(TrackObject, conditions.ReasonKubernetesUnavailable, 0), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second)),
			Step{Action: Record, Record: recording()}, Result{}, cleared(TrackObject),
		},
		{
			"a failed write of the record is retried after a backoff", nil, Step{Action: Record, Record: recording()}, Result{Err: errAPIServer},
			failed(TrackObject, conditions.ReasonKubernetesUnavailable, time.Second),
		},
		{
			"a record without a tunnel resets the configuration and the token", nil,
			Step{Action: Record, Record: recording(func(s *v1alpha1.TunnelStatus) { s.TunnelID = "" })}, Result{},
			func(m *Memory) {
				m.Remote.Configuration, m.LateWrites, m.InEffect, m.Token = RemoteConfiguration{}, LateWrites{}, "", TokenCheck{}
			},
		},
		{
			"recording the found tunnel ends the search",
			combine(tunnelNotFound, tunnelRead(Present)), Step{Action: Record, Record: recording()}, Result{},
			func(m *Memory) { m.Remote.Configuration.Missing = false },
		},
	})
}

func TestConcludeTokensAndConnectors(t *testing.T) {
	testConclude(t, []concludeRow{
		{
			"a token is read again after the interval", func(f *Facts) { f.Memory.Token.Pending, f.Memory.Token.Suspect = true, true },
			Step{Action: ReadToken, ReadInterval: 20 * time.Hour}, Result{}, func(m *Memory) { m.Token = TokenCheck{NextCheck: At(uptime + 20*time.Hour)} },
		},
		{
			"after a rotation the new token is not in the Secret yet", nil, Step{Action: RotateToken}, Result{},
			func(m *Memory) { m.Token.Rotated, m.Token.Pending = At(uptime), true },
		},
		{
			"a rotation that waits for the API request budget was not attempted, even after an earlier rotation",
			func(f *Facts) { f.Memory.Token.Rotated = At(time.Minute) }, Step{Action: RotateToken}, Result{Err: errBudget},
			func(m *Memory) {
				m.Token.Rotated = Instant{}
				m.Backoffs[TrackToken] = Backoff{Until: At(uptime + 20*time.Second), Slot: Slot{Assigned: true}}
			},
		},
		{
			"a rotation that was rejected by the rate limit changed nothing", func(f *Facts) { f.Memory.Token.Rotated = At(time.Minute) },
			Step{Action: RotateToken}, Result{Err: errTooMany},
			allOf(failed(TrackToken, conditions.ReasonRateLimited, 20*time.Second), func(m *Memory) { m.Token.Rotated = Instant{} }),
		},
		{
			"a rotation without a response may still be applied", nil, Step{Action: RotateToken}, Result{Err: errNoResponse},
			allOf(failed(TrackToken, conditions.ReasonCloudflareUnavailable, time.Second), func(m *Memory) { m.Token.Unanswered = At(uptime) }),
		},
		{
			"a successful rotation resets an earlier attempt without a response", func(f *Facts) { f.Memory.Token.Unanswered = At(time.Minute) }, Step{Action: RotateToken}, Result{},
			func(m *Memory) {
				m.Token.Rotated, m.Token.Pending, m.Token.Unanswered = At(uptime), true, Instant{}
			},
		},
		{
			"a token Secret that belongs to another object is a problem that requires a user", nil, Step{Action: ReadToken},
			Result{Err: &Failure{Reason: conditions.ReasonObjectTaken, Err: errors.New("secret infra-shared belongs to another object")}},
			failed(TrackToken, conditions.ReasonObjectTaken, time.Second),
		},
		{
			"a failed apply of the connectors reports the error of the API server", nil, Step{Action: RunConnectors}, Result{Err: errAPIServer},
			failed(TrackConnectors, conditions.ReasonConnectorsFailed, time.Second),
		},
	})
}

func TestConcludeExtendsAndResetsBackoffs(t *testing.T) {
	read := Step{Action: FindByName}
	before := func(failures int) change {
		return func(f *Facts) { f.Memory.Backoffs[TrackTunnel].Failures = failures }
	}
	next := func(failures int, delay time.Duration, reason conditions.Reason) after {
		return allOf(failed(TrackTunnel, reason, delay), func(m *Memory) { m.Backoffs[TrackTunnel].Failures = failures })
	}
	testConclude(t, []concludeRow{
		{"the wait doubles with each failure", before(1), read, Result{Err: errNoResponse}, next(2, 2*time.Second, conditions.ReasonCloudflareUnavailable)},
		{"the wait is half a minute after the sixth failure", before(5), read, Result{Err: errNoResponse}, next(6, 32*time.Second, conditions.ReasonCloudflareUnavailable)},
		{"the wait is never longer than a minute", before(6), read, Result{Err: errNoResponse}, next(6, time.Minute, conditions.ReasonCloudflareUnavailable)},
		{
			"the backoff of an outage is at least the wait that the API requests", nil, read,
			Result{Err: &provider.UnavailableError{Err: errors.New("502"), RetryAfter: 5 * time.Minute}}, next(1, 5*time.Minute, conditions.ReasonCloudflareUnavailable),
		},
		{"the backoff of a rate limit is the wait that the API requests", before(6), read, Result{Err: errTooMany}, next(6, 20*time.Second, conditions.ReasonRateLimited)},
		{"a success resets the backoff of its track", before(4), read, Result{Tunnel: provider.Tunnel{ID: testTunnelID, Name: testTunnelName}}, allOf(cleared(TrackTunnel), tunnelPresent)},
		{"a wait changes nothing", before(4), Step{Action: Wait}, Result{}, unchanged},
	})
}

func TestObserveUpdatesMemory(t *testing.T) {
	rows := []struct {
		name  string
		facts change
		after after
	}{
		{"nothing changes for a healthy Tunnel", nil, unchanged},
		{"the first live read without the Gateway is remembered", gatewayIs(GatewayGone), func(m *Memory) { m.MissingSince = At(uptime) }},
		{"a Gateway of another controller counts as missing", gatewayIs(GatewayNotManaged), func(m *Memory) { m.MissingSince = At(uptime) }},
		{"later live reads do not change the time of the first read", gatewayGone(20 * time.Second), unchanged},
		{
			"an unknown state restarts the retirement delay",
			combine(gatewayGone(20*time.Second), gatewayIs(GatewayUnknown)), func(m *Memory) { m.MissingSince = Instant{} },
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
			"new credentials reset the backoffs of the Cloudflare API",
			combine(failing(TrackTunnel, conditions.ReasonUnauthorized, time.Second), failing(TrackConfiguration, conditions.ReasonUnauthorized, time.Second),
				failing(TrackToken, conditions.ReasonUnauthorized, time.Second), failing(TrackConnectors, conditions.ReasonConnectorsFailed, time.Second),
				func(f *Facts) { f.Credentials.Version = "2" }),
			allOf(cleared(TrackTunnel), cleared(TrackConfiguration), cleared(TrackToken), func(m *Memory) { m.CredentialsVersion = "2" }),
		},
		{
			"new credentials restart the wait for DNS records",
			retiring(func(f *Facts) {
				f.DNS.Unreleased, f.Memory.RecordsRemainSince, f.Credentials.Version = true, At(time.Minute), "2"
			}),
			func(m *Memory) { m.CredentialsVersion, m.RecordsRemainSince = "2", At(uptime) },
		},
		{"missing credentials do not count as new credentials", credentials(CredentialsMissing), unchanged},
		{
			"more live connectors than pods are remembered", combine(rotateOnDemand, connections(0, connectedConnector("a", 0), connectedConnector("b", 0), connectedConnector("c", 0))),
			func(m *Memory) { m.SurplusSince = At(uptime) },
		},
		{
			"there is no surplus while the pods are not listed", combine(surplusConnectors(time.Minute), connections(0, connectedConnector("a", 0), connectedConnector("b", 0), connectedConnector("c", 0))),
			func(m *Memory) { m.SurplusSince = Instant{} },
		},
		{
			"a requested reconcile ends all backoffs, and makes everything due to be read",
			combine(refreshTo("a"), connections(0, connectedConnector("a", 0)), failing(TrackTunnel, conditions.ReasonCloudflareUnavailable, time.Second), failing(TrackConfiguration, conditions.ReasonRateLimited, time.Second),
				failing(TrackToken, conditions.ReasonTokenFailed, time.Second), failing(TrackConnectors, conditions.ReasonConnectorsFailed, time.Second),
				failing(TrackStatuses, conditions.ReasonKubernetesUnavailable, time.Second), failing(TrackObject, conditions.ReasonKubernetesUnavailable, time.Second)),
			allOf(cleared(TrackTunnel), cleared(TrackToken), cleared(TrackConnectors), cleared(TrackStatuses), cleared(TrackObject), func(m *Memory) {
				m.Refresh = Refresh{Value: "a", Started: At(uptime), Configuration: true, Connections: true}
				m.Token.Suspect, m.Remote.Tunnel, m.Remote.Configuration.NextRead, m.Remote.Connections.Read = true, RemoteTunnel{}, 0, Instant{}
			}),
		},
		{
			"as many live connectors as pods end the surplus", combine(surplusConnectors(time.Minute), connections(0, connectedConnector("a", 0), connectedConnector("b", 0), disconnected("c"))),
			func(m *Memory) { m.SurplusSince = Instant{} },
		},
		{
			"a pause resets the external changes", combine(paused, func(f *Facts) { f.Memory.Drift = Drift{Times: []Instant{At(time.Minute)}, Version: 7} }),
			func(m *Memory) { m.Drift = Drift{} },
		},
		{
			"a missing Tunnel object resets the Memory, except requests that may still be applied",
			func(f *Facts) {
				f.Object = nil
				f.Memory.Created, f.Memory.LateWrites = At(time.Minute), LateWrites{Hashes: []string{"late"}, Settled: At(2 * time.Minute)}
			},
			func(m *Memory) { *m = Memory{Created: m.Created, LateWrites: m.LateWrites, CredentialsVersion: "1"} },
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
			if diff := cmp.Diff(want, Observe(f), cmp.AllowUnexported(Instant{}), comparableReasons); diff != "" {
				t.Errorf("unexpected Memory (-want +got):\n%s", diff)
			}
		})
	}
}
