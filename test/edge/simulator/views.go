package simulator

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// tunnelView is a tunnel in an API response.
type tunnelView struct {
	ID           string           `json:"id"`
	AccountTag   string           `json:"account_tag"`
	Name         string           `json:"name"`
	ConfigSrc    string           `json:"config_src"`
	RemoteConfig bool             `json:"remote_config"`
	Status       string           `json:"status"`
	TunType      string           `json:"tun_type"`
	CreatedAt    time.Time        `json:"created_at"`
	DeletedAt    *time.Time       `json:"deleted_at"`
	Connections  []connectionView `json:"connections"`
	Metadata     struct{}         `json:"metadata"`
}

func (t *tunnel) view() tunnelView {
	view := tunnelView{
		ID:           t.id,
		AccountTag:   t.account,
		Name:         t.name,
		ConfigSrc:    t.configSrc,
		RemoteConfig: t.configSrc == configSrcCloudflare,
		Status:       t.status(),
		TunType:      "cfd_tunnel",
		CreatedAt:    t.createdAt,
		Connections:  []connectionView{}, // the API lists connections at a separate endpoint
	}
	if t.deleted() {
		deletedAt := t.deletedAt
		view.DeletedAt = &deletedAt
	}
	return view
}

func (t *tunnel) status() string {
	switch {
	case slices.ContainsFunc(t.replicas, (*replica).connected):
		return "healthy"
	case t.everConnected:
		return "down"
	default:
		return "inactive"
	}
}

// configurationView is a configuration in an API response. Config is null if the
// tunnel was never configured.
type configurationView struct {
	AccountID string          `json:"account_id"`
	TunnelID  string          `json:"tunnel_id"`
	Version   int64           `json:"version"`
	Config    json.RawMessage `json:"config"`
	Source    string          `json:"source"`
	CreatedAt time.Time       `json:"created_at"`
}

func (t *tunnel) configurationView() configurationView {
	return configurationView{
		AccountID: t.account,
		TunnelID:  t.id,
		Version:   t.version,
		Config:    t.configuration,
		Source:    t.configSrc,
		CreatedAt: t.configuredAt,
	}
}

// replicaView is a connector in an API response.
type replicaView struct {
	ID            string           `json:"id"`
	Arch          string           `json:"arch"`
	ConfigVersion int64            `json:"config_version"`
	Conns         []connectionView `json:"conns"`
	Features      []string         `json:"features"`
	RunAt         time.Time        `json:"run_at"`
	Version       string           `json:"version"`
}

// connectionView is one of a connector's connections.
type connectionView struct {
	ID            string    `json:"id"`
	UUID          string    `json:"uuid"`
	ClientID      string    `json:"client_id"`
	ClientVersion string    `json:"client_version"`
	ColoName      string    `json:"colo_name"`
	OpenedAt      time.Time `json:"opened_at"`
	OriginIP      string    `json:"origin_ip"`
	// IsPendingReconnect is true for a connection that has disconnected.
	IsPendingReconnect bool `json:"is_pending_reconnect"`
}

const (
	connectorVersion        = "2026.8.2"
	connectionsPerConnector = 4
)

// view returns the replica for an API response. configVersion is the configuration
// version that it runs.
func (r *replica) view(configVersion int64) replicaView {
	view := replicaView{
		ID:            r.id,
		Arch:          "linux_amd64",
		ConfigVersion: configVersion,
		Features:      []string{},
		RunAt:         r.startedAt,
		Version:       connectorVersion,
	}
	for i := range connectionsPerConnector {
		id := uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s/%d", r.id, i)).String()
		view.Conns = append(view.Conns, connectionView{
			ID: id, UUID: id, ClientID: r.id, ClientVersion: connectorVersion,
			ColoName: "dfw01", OpenedAt: r.startedAt, OriginIP: "192.0.2.1",
			IsPendingReconnect: r.lost(),
		})
	}
	return view
}
