package cloudflare

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Options say which account is worked on, and how its API is reached. Whatever
// prints them or marshals them to JSON leaves the token out; fmt cannot be kept
// from it when they lie in an unexported field, so hand them to [New] and do
// not keep them.
type Options struct {
	// AccountID is the account that owns the tunnels. Required.
	AccountID string
	// APIToken may edit the account's tunnels (permission "Cloudflare Tunnel:
	// Edit"). Required.
	APIToken string `json:"-"`
	// BaseURL of the API, down to and with its version, for instance
	// "http://127.0.0.1:8787/client/v4". Cloudflare's own when empty.
	BaseURL string
	// Transport sends the requests, retries included. One like
	// [http.DefaultTransport] when nil.
	Transport http.RoundTripper `json:"-"`
}

// Format writes the options without the token, whatever the verb.
func (o Options) Format(s fmt.State, _ rune) {
	_, _ = fmt.Fprintf(s, "cloudflare.Options{AccountID:%q, BaseURL:%q}", o.AccountID, o.BaseURL)
}

// validate returns all that is wrong with the options.
func (o Options) validate() error {
	return errors.Join(o.checkAccountID(), o.checkAPIToken(), o.checkBaseURL())
}

func (o Options) checkAccountID() error {
	if o.AccountID == "" {
		return errors.New("AccountID is empty")
	}
	if !isPathSegment(o.AccountID) {
		return fmt.Errorf("AccountID %q has characters that no account ID has", o.AccountID)
	}
	return nil
}

func (o Options) checkAPIToken() error {
	if o.APIToken == "" {
		return errors.New("APIToken is empty")
	}
	for _, c := range o.APIToken {
		if c <= ' ' || c > '~' {
			return errors.New("APIToken has characters that no token has, perhaps a line break at its end")
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
		return errors.New("BaseURL is not a URL") // the parser's error would repeat a password in it
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return fmt.Errorf("BaseURL %q is not an absolute http or https URL", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("BaseURL %q has more than scheme, host and path", u.Redacted())
	}
	return nil
}

// isPathSegment tells whether s can stand between two slashes of a URL as it
// is, and leads nowhere else.
func isPathSegment(s string) bool {
	return s != "" && s != "." && s != ".." && url.PathEscape(s) == s
}
