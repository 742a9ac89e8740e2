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

// Tunnel is what the API knows of a tunnel.
type Tunnel struct {
	ID        string
	Name      string
	Deleted   bool
	CreatedAt time.Time
	// ConfigSrc is "cloudflare" when the connector takes the remote document,
	// and "local" when it ignores it.
	ConfigSrc string
	// Version counts the documents that were stored.
	Version int64
}

// remotely is the config_src under which connectors take the remote document.
const remotely = "cloudflare"

// locally is the other one.
const locally = "local"

type tunnel struct {
	id, account, name, configSrc, secret string
	createdAt, deletedAt                 time.Time

	document     json.RawMessage
	version      int64
	configuredAt time.Time

	running        *connector
	runningVersion int64
	replicas       []*replica
	ran            bool // had a replica once
	routed         bool // has private network routes
}

func newTunnel(account, name, configSrc, secret string) *tunnel {
	now := time.Now().UTC()
	return &tunnel{
		id: uuid.NewString(), account: account, name: name, configSrc: configSrc, secret: secret,
		createdAt: now, configuredAt: now, running: idle,
	}
}

// secretLength is how many bytes a tunnel's secret has at least.
const secretLength = 32

// newSecret returns a secret that nobody had before, in base64.
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

// configure stores a document. The connector takes it too, when it can;
// otherwise it goes on with the one that it has.
func (t *tunnel) configure(document json.RawMessage, dial dialFunc) {
	t.document = document
	t.version++
	t.configuredAt = time.Now().UTC()
	if t.configSrc != remotely {
		return
	}
	rules, err := Compile(document)
	if err != nil {
		return
	}
	next, err := newConnector(rules, dial)
	if err != nil {
		return
	}
	t.running.retire()
	t.running, t.runningVersion = next, t.version
}

// setLocal makes the connector take its configuration from elsewhere, or no
// more.
func (t *tunnel) setLocal(local bool) {
	t.configSrc = remotely
	if local {
		t.configSrc = locally
		t.running.retire()
		t.running, t.runningVersion = idle, 0
	}
}

// token is what a connector is started with.
func (t *tunnel) token() string {
	return credentials{Account: t.account, Tunnel: t.id, Secret: t.secret}.token()
}

// complete checks that the document is an object and adds the fields that the
// API fills in and clients need not know.
func complete(document json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, fmt.Errorf("parse the document: %w", err)
	}
	if fields == nil {
		return nil, errors.New("the document must be an object")
	}
	addField(fields, "originRequest", `{}`)
	addField(fields, "warp-routing", `{"enabled":false}`)
	var rules []map[string]json.RawMessage
	if err := json.Unmarshal(fields["ingress"], &rules); err != nil {
		return json.Marshal(fields) // no rules, or none that can be completed
	}
	for _, rule := range rules {
		addField(rule, "originRequest", `{}`)
	}
	ingress, err := json.Marshal(rules)
	if err != nil {
		return nil, fmt.Errorf("write the rules: %w", err)
	}
	fields["ingress"] = ingress
	return json.Marshal(fields)
}

func addField(object map[string]json.RawMessage, name, value string) {
	if _, ok := object[name]; !ok && object != nil {
		object[name] = json.RawMessage(value)
	}
}
