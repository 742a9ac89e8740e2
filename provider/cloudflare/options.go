package cloudflare

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Options contains the account and the connection settings for [Client.Open]. Formatting
// and marshalling to JSON omit the API token, with one exception: fmt prints the token if
// another type has the Options in an unexported field. So pass Options to [Client.Open]
// and do not store them.
type Options struct {
	// AccountID is the account that owns the tunnels. Required.
	AccountID string
	// APIToken is an API token with the permission "Cloudflare Tunnel: Edit" for the
	// account. Required.
	APIToken string `json:"-"`
	// BaseURL is the API's URL including its version, for instance
	// "http://127.0.0.1:8787/client/v4". Default: the public Cloudflare API.
	BaseURL string
	// Transport sends the requests and their retries. Default: a transport like
	// [http.DefaultTransport].
	Transport http.RoundTripper `json:"-"`
}

// Format writes the options without the API token, for all verbs.
func (o Options) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "cloudflare.Options{AccountID:%q, BaseURL:%q}", o.AccountID, o.BaseURL)
}

// validate returns an error with all invalid options.
func (o Options) validate() error {
	return errors.Join(o.checkAccountID(), o.checkAPIToken(), o.checkBaseURL())
}

func (o Options) checkAccountID() error {
	if o.AccountID == "" {
		return errors.New("AccountID is empty")
	}
	if !isPathSegment(o.AccountID) {
		return fmt.Errorf("AccountID %q contains a character that is not allowed in an account ID", o.AccountID)
	}
	return nil
}

func (o Options) checkAPIToken() error {
	if o.APIToken == "" {
		return errors.New("APIToken is empty")
	}
	for _, c := range o.APIToken {
		if c <= ' ' || c > '~' {
			return errors.New("APIToken contains a character that is not allowed in an API token; check for a trailing line break")
		}
	}
	return nil
}

func (o Options) checkBaseURL() error {
	if o.BaseURL == "" {
		return nil
	}
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return errors.New("BaseURL is not a URL") // the parser's error could contain a password
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("BaseURL %q is not an absolute http or https URL", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("BaseURL %q must have only a scheme, a host and a path", u.Redacted())
	}
	return nil
}

// isPathSegment reports whether s is a URL path segment that needs no escaping and is not
// a relative segment.
func isPathSegment(s string) bool {
	return s != "" && s != "." && s != ".." && url.PathEscape(s) == s
}
