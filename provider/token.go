package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Token is the token with which a tunnel's connectors authenticate. Anyone who has it can
// serve the tunnel's hostnames.
//
// Formatting and marshalling hide the token, with one exception that Go does not let a
// type prevent: fmt prints the Token if another type has it in an unexported field.
// string(t) is the token itself.
type Token string

// String returns "(hidden)", or "" for an empty token.
func (t Token) String() string {
	if t == "" {
		return ""
	}
	return "(hidden)"
}

// Format hides the token from fmt, for all verbs.
func (t Token) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, t.String()) }

// MarshalText hides the token from JSON and YAML.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// errInvalidToken does not include the text, which may be another secret.
var errInvalidToken = errors.New("not a tunnel token")

// Credentials returns the account ID and the tunnel ID that the token contains. It
// returns an error if a connector could not parse the token. The error does not contain
// the token. (Source: cloudflared, whose tokens are the base64 of a JSON object with the
// account "a", the tunnel "t" and the secret "s".)
func (t Token) Credentials() (account string, id TunnelID, err error) {
	decoded, err := base64.StdEncoding.DecodeString(string(t))
	if err != nil {
		return "", "", errInvalidToken
	}
	var c struct {
		Account string   `json:"a"`
		Tunnel  TunnelID `json:"t"`
		Key     []byte   `json:"s"`
	}
	if err := json.Unmarshal(decoded, &c); err != nil || c.Account == "" || c.Tunnel == "" || len(c.Key) == 0 {
		return "", "", errInvalidToken
	}
	return c.Account, c.Tunnel, nil
}
