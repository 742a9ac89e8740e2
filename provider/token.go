package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Token is what the connectors of a tunnel run with: whoever has it can serve
// in the tunnel's name. It never prints and is never marshalled; only fmt
// cannot be kept from it when it lies in an unexported field. string(t) is the
// token itself.
type Token string

// String hides the token from logs.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return "(hidden)"
}

// Format hides the token from fmt, whatever the verb.
func (t Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, t.String()) }

// MarshalText hides the token from JSON and YAML.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// errNoCredentials does not say what was found: that may be another secret.
var errNoCredentials = errors.New("not the token of a tunnel")

// Credentials returns for which account and tunnel the token is, or an error
// when the connector could not read it. The error does not repeat the token.
func (t Token) Credentials() (account string, id TunnelID, err error) {
	document, err := base64.StdEncoding.DecodeString(string(t))
	if err != nil {
		return "", "", errNoCredentials
	}
	var c struct {
		Account string   `json:"a"`
		Tunnel  TunnelID `json:"t"`
		Key     []byte   `json:"s"`
	}
	if err := json.Unmarshal(document, &c); err != nil || c.Account == "" || c.Tunnel == "" || len(c.Key) == 0 {
		return "", "", errNoCredentials
	}
	return c.Account, c.Tunnel, nil
}
