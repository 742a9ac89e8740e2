package cloudflare

import (
	"strings"
	"testing"
)

func TestOptionsAreValidated(t *testing.T) {
	tests := map[string]struct {
		change func(*Options)
		want   string // a part of the error; empty: no error
	}{
		"valid":                  {func(*Options) {}, ""},
		"valid without base":     {func(o *Options) { o.BaseURL = "" }, ""},
		"no account":             {func(o *Options) { o.AccountID = "" }, "AccountID is empty"},
		"account with a slash":   {func(o *Options) { o.AccountID = "a/b" }, `AccountID "a/b"`},
		"no token":               {func(o *Options) { o.APIToken = "" }, "APIToken is empty"},
		"token with line break":  {func(o *Options) { o.APIToken = "secret\n" }, "line break"},
		"base without scheme":    {func(o *Options) { o.BaseURL = "api.test/v4" }, "BaseURL"},
		"base of another scheme": {func(o *Options) { o.BaseURL = "ftp://api.test" }, "BaseURL"},
		"base with password":     {func(o *Options) { o.BaseURL = "https://u:secret@api.test" }, "BaseURL"},
		"base with query":        {func(o *Options) { o.BaseURL = "https://api.test?x" }, "BaseURL"},
		"base not a URL":         {func(o *Options) { o.BaseURL = "https://u:secret@api.test:port" }, "BaseURL"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := Options{AccountID: account, APIToken: "secret", BaseURL: baseURL}
			test.change(&o)
			_, err := new(Client).Open(o)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q contains a secret", err)
			}
		})
	}
}

func TestErrorNamesAllInvalidOptions(t *testing.T) {
	_, err := new(Client).Open(Options{BaseURL: "x"})
	for _, field := range []string{"AccountID", "APIToken", "BaseURL"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
