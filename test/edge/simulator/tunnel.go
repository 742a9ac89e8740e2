package simulator

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Tunnel describes a tunnel in the API.
type Tunnel struct {
	ID        string
	Name      string
	Deleted   bool
	CreatedAt time.Time
	// ConfigSrc is "cloudflare" if the connector uses the stored configuration, and
	// "local" if it ignores it.
	ConfigSrc string
	// Version counts the configurations that were stored.
	Version int64
}

// Values of config_src.
const (
	configSrcCloudflare = "cloudflare" // connectors use the stored configuration
	configSrcLocal      = "local"      // connectors use a local configuration file
)

type tunnel struct {
	id, account, name, configSrc, secret string
	createdAt, deletedAt                 time.Time

	configuration json.RawMessage
	version       int64
	configuredAt  time.Time

	dataPath      *dataPath
	activeVersion int64
	replicas      []*replica
	unregistered  []*replica // have unregistered, but the data path has not noticed it yet
	carried       int        // requests that connectors have carried
	everConnected bool       // a replica has connected at least once
	hasRoutes     bool       // has private network routes
}

func newTunnel(account, name, configSrc, secret string) *tunnel {
	now := time.Now().UTC()
	return &tunnel{
		id: uuid.NewString(), account: account, name: name, configSrc: configSrc, secret: secret,
		createdAt: now, configuredAt: now, dataPath: emptyDataPath,
	}
}

// A tunnel's secret has at least secretLength bytes.
const secretLength = 32

// newSecret returns a random secret in base64.
func newSecret() string {
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // never fails
	return base64.StdEncoding.EncodeToString(secret)
}

func (t *tunnel) deleted() bool { return !t.deletedAt.IsZero() }

func (t *tunnel) summary() Tunnel {
	return Tunnel{
		ID: t.id, Name: t.name, Deleted: t.deleted(), CreatedAt: t.createdAt,
		ConfigSrc: t.configSrc, Version: t.version,
	}
}

// configure stores a configuration. The data path uses it if it is valid;
// otherwise the data path keeps its previous configuration.
func (t *tunnel) configure(configuration json.RawMessage, dial dialer) {
	t.configuration = configuration
	t.version++
	t.configuredAt = time.Now().UTC()
	if t.configSrc != configSrcCloudflare {
		return
	}
	rules, err := Compile(configuration)
	if err != nil {
		return
	}
	next, err := newDataPath(rules, dial)
	if err != nil {
		return
	}
	t.dataPath.closeIdleConnections()
	t.dataPath, t.activeVersion = next, t.version
}

// setLocal makes the tunnel locally managed, or remotely managed.
func (t *tunnel) setLocal(local bool) {
	t.configSrc = configSrcCloudflare
	if local {
		t.configSrc = configSrcLocal
		t.dataPath.closeIdleConnections()
		t.dataPath, t.activeVersion = emptyDataPath, 0
	}
}

// token returns the token that a connector is started with.
func (t *tunnel) token() string {
	return credentials{Account: t.account, Tunnel: t.id, Secret: t.secret}.token()
}

// addDefaults checks that the configuration is an object and adds the fields that
// the API adds.
func addDefaults(configuration json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(configuration, &fields); err != nil {
		return nil, fmt.Errorf("parse the configuration: %w", err)
	}
	if fields == nil {
		return nil, errors.New("the configuration must be an object")
	}
	addField(fields, "originRequest", `{}`)
	addField(fields, "warp-routing", `{"enabled":false}`)
	var rules []map[string]json.RawMessage
	if err := json.Unmarshal(fields["ingress"], &rules); err != nil {
		return json.Marshal(fields) // no rules, or invalid rules
	}
	for _, rule := range rules {
		addField(rule, "originRequest", `{}`)
	}
	ingress, err := json.Marshal(rules)
	if err != nil {
		return nil, fmt.Errorf("encode the rules: %w", err)
	}
	fields["ingress"] = ingress
	return json.Marshal(fields)
}

func addField(object map[string]json.RawMessage, name, value string) {
	if _, ok := object[name]; !ok && object != nil {
		object[name] = json.RawMessage(value)
	}
}
