// Package access simulates the applications of Cloudflare Access, their policies and tags in
// several accounts, and which application protects a URL. It has no HTTP API and no login;
// package simulator has both.
//
// The rules come from Cloudflare's documentation and from error messages in public
// repositories. A comment says so if a rule is uncertain.
//
// The tests compare the product with this package, so it shares no code with the product.
package access

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// DefaultMaxApplications is how many applications an account can have. (Source: the
// documentation's account limits.)
const DefaultMaxApplications = 500

// Options configures a [Database]. The zero value accepts every hostname.
type Options struct {
	// HasZone reports whether the account has an active zone for a hostname, which can be a
	// wildcard. It must not call the database. Nil means that each account has every zone.
	HasZone func(account, hostname string) bool
	// MaxApplications is how many applications an account can have. 0 selects
	// [DefaultMaxApplications].
	MaxApplications int
	// TeamName is the name of the accounts' Zero Trust organization. An empty name selects
	// "team".
	TeamName string
	// OnRevoke is called after the tokens of an application were revoked. It must not call
	// the database. Nil means no call.
	OnRevoke func(Application)
}

// Database is the applications, policies and tags of all accounts. Its methods are safe for
// concurrent use.
type Database struct {
	options Options

	mu       sync.Mutex
	accounts map[string]*account
}

// account is what one account has, in the order in which it was created.
type account struct {
	applications []*application
	policies     []Policy
	tags         []string
}

// New returns an empty database.
func New(o Options) *Database {
	if o.HasZone == nil {
		o.HasZone = func(string, string) bool { return true }
	}
	if o.MaxApplications == 0 {
		o.MaxApplications = DefaultMaxApplications
	}
	if o.TeamName == "" {
		o.TeamName = "team"
	}
	if o.OnRevoke == nil {
		o.OnRevoke = func(Application) {}
	}
	return &Database{options: o, accounts: map[string]*account{}}
}

// TeamName returns the name of an account's Zero Trust organization: all accounts have the
// same.
func (d *Database) TeamName(string) string { return d.options.TeamName }

// account returns an account, which exists. The caller has the lock.
func (d *Database) account(id string) *account {
	a := d.accounts[id]
	if a == nil {
		a = &account{}
		d.accounts[id] = a
	}
	return a
}

// Applications returns the account's applications in the order in which they were created.
func (d *Database) Applications(account string) []Application {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	all := make([]Application, len(a.applications))
	for i, stored := range a.applications {
		all[i] = stored.view(a)
	}
	return all
}

// Application returns an application. The error is an [*Error].
func (d *Database) Application(account, id string) (Application, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	stored := a.find(id)
	if stored == nil {
		return Application{}, unknownApplication()
	}
	return stored.view(a), nil
}

// Create creates an application from the body of a request. The error is an [*Error].
func (d *Database) Create(account string, body json.RawMessage) (Application, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	if len(a.applications) >= d.options.MaxApplications {
		return Application{}, tooManyApplications()
	}
	now := time.Now().UTC()
	created := &application{account: account, id: uuid.NewString(), aud: newAUD(), createdAt: now, updatedAt: now}
	if err := d.write(a, created, body); err != nil {
		return Application{}, err
	}
	a.applications = append(a.applications, created)
	return created.view(a), nil
}

// Replace replaces all fields of an application by those in the body of a request. The error
// is an [*Error].
func (d *Database) Replace(account, id string, body json.RawMessage) (Application, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	stored := a.find(id)
	if stored == nil {
		return Application{}, unknownApplication()
	}
	if err := d.write(a, stored, body); err != nil {
		return Application{}, err
	}
	stored.updatedAt = time.Now().UTC()
	return stored.view(a), nil
}

// Edit makes an external change: it passes the application's fields to change, and replaces
// them by the result. It panics if the application does not exist or the result is invalid,
// because the test is wrong.
func (d *Database) Edit(account, id string, change func(fields map[string]any)) Application {
	current, err := d.Application(account, id)
	if err == nil {
		fields := current.fields
		change(fields)
		var body []byte
		if body, err = json.Marshal(fields); err == nil {
			current, err = d.Replace(account, id, body)
		}
	}
	if err != nil {
		panic("access: edit application " + id + ": " + err.Error())
	}
	return current
}

// Delete deletes an application. The error is an [*Error].
func (d *Database) Delete(account, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	if a.find(id) == nil {
		return unknownApplication()
	}
	a.applications = slices.DeleteFunc(a.applications, func(other *application) bool { return other.id == id })
	return nil
}

// Revoke revokes the tokens of an application. The error is an [*Error].
func (d *Database) Revoke(account, id string) error {
	revoked, err := d.revoke(account, id)
	if err == nil {
		d.options.OnRevoke(revoked)
	}
	return err
}

func (d *Database) revoke(account, id string) (Application, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.account(account)
	stored := a.find(id)
	if stored == nil {
		return Application{}, unknownApplication()
	}
	stored.revocations++
	stored.revokedAt = time.Now().UTC()
	return stored.view(a), nil
}

func (a *account) find(id string) *application {
	for _, stored := range a.applications {
		if stored.id == id {
			return stored
		}
	}
	return nil
}
