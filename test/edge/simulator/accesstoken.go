package simulator

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"
)

// Claims are what a token of Cloudflare Access states.
type Claims struct {
	// Team is the name of the Zero Trust organization that issues the token.
	Team string
	// Audience has the AUD tags of the applications that the token is for.
	Audience []string
	// Email is a user's address, and CommonName the client ID of a service token.
	Email, CommonName string
	// IssuedAt is now if it is zero, and Expires is an hour later if it is zero.
	IssuedAt, Expires time.Time
	// nonce identifies the session, see session.
	nonce string
}

// Sign returns the token with these claims, signed by the team as a login signs it. A test
// uses it for a token of an application that the simulator does not have.
func (c Claims) Sign() string { return c.signWith(keyOf(c.Team)) }

// Forge returns the token signed by a key that does not belong to the team.
func (c Claims) Forge() string { return c.signWith(keyOf("forger")) }

// signWith signs the claims with RS256. The token names the team's key, whichever signs.
func (c Claims) signWith(key *rsa.PrivateKey) string {
	issued := c.IssuedAt
	if issued.IsZero() {
		issued = time.Now()
	}
	expires := c.Expires
	if expires.IsZero() {
		expires = issued.Add(time.Hour)
	}
	payload := tokenPayload{
		Issuer: issuerOf(c.Team), Audience: c.Audience, Email: c.Email, CommonName: c.CommonName,
		IssuedAt: issued.Unix(), Expires: expires.Unix(), Nonce: c.nonce, Type: "app",
	}
	signed := encodePart(tokenHead{Algorithm: algorithm, KeyID: keyID(c.Team), Type: "JWT"}) + "." + encodePart(payload)
	digest := sha256.Sum256([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(must(rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])))
}

// lasting returns the claims for a session that begins now. A zero duration lasts an hour.
func (c Claims) lasting(duration time.Duration) Claims {
	if c.IssuedAt = time.Now(); duration > 0 {
		c.Expires = c.IssuedAt.Add(duration)
	}
	return c
}

// algorithm is the only one that cloudflared accepts.
const algorithm = "RS256"

type tokenHead struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ,omitempty"`
}

type tokenPayload struct {
	Issuer     string   `json:"iss"`
	Audience   audience `json:"aud"`
	Email      string   `json:"email,omitempty"`
	CommonName string   `json:"common_name,omitempty"`
	IssuedAt   int64    `json:"iat"`
	Expires    int64    `json:"exp"`
	Nonce      string   `json:"identity_nonce,omitempty"`
	Type       string   `json:"type"`
}

// audience is a list in a token of Access. cloudflared accepts a single text too.
type audience []string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(text []byte) error {
	var single string
	if json.Unmarshal(text, &single) == nil {
		*a = audience{single}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

func encodePart(part any) string {
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(part)))
}

// teamDomain is the domain of the teams' addresses.
const teamDomain = ".cloudflareaccess.com"

// issuerOf returns the address of a team, which is the issuer of its tokens.
func issuerOf(team string) string { return "https://" + team + teamDomain }

// verify returns the payload of a token of the team. It checks what cloudflared checks
// with go-oidc, but for the audience: the algorithm, the signature by one of the team's keys,
// the issuer and the expiry. (Sources: NewJWTValidator in
// ingress/middleware/jwtvalidator.go of cloudflared, and Verify in oidc/verify.go of
// coreos/go-oidc.)
func verify(team, token string) (tokenPayload, error) {
	var header tokenHead
	var payload tokenPayload
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return payload, errors.New("malformed token")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err := cmp.Or(err, decodePart(parts[0], &header)); err != nil {
		return payload, fmt.Errorf("malformed token: %w", err)
	}
	if header.Algorithm != algorithm {
		return payload, fmt.Errorf("unexpected signature algorithm %q", header.Algorithm)
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if header.KeyID != "" && header.KeyID != keyID(team) || rsa.VerifyPKCS1v15(&keyOf(team).PublicKey, crypto.SHA256, digest[:], signature) != nil {
		return payload, errors.New("failed to verify the signature")
	}
	if err := decodePart(parts[1], &payload); err != nil {
		return payload, fmt.Errorf("malformed claims: %w", err)
	}
	switch {
	case payload.Issuer != issuerOf(team):
		return payload, fmt.Errorf("issued by %q", payload.Issuer)
	case time.Unix(payload.Expires, 0).Before(time.Now()):
		return payload, errors.New("the token is expired")
	}
	return payload, nil
}

func decodePart(part string, to any) error {
	content, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, to)
}

// teamKeys are the teams' private keys. All servers share them, because making one takes
// much longer than anything else in a test.
var teamKeys = struct {
	sync.Mutex
	byTeam map[string]*rsa.PrivateKey
}{byTeam: map[string]*rsa.PrivateKey{}}

// keyOf returns the key with which a team signs.
func keyOf(team string) *rsa.PrivateKey {
	teamKeys.Lock()
	defer teamKeys.Unlock()
	key, ok := teamKeys.byTeam[team]
	if !ok {
		key = must(rsa.GenerateKey(rand.Reader, 2048))
		teamKeys.byTeam[team] = key
	}
	return key
}

// keyID returns the ID of a team's key.
func keyID(team string) string {
	digest := sha256.Sum256([]byte(team))
	return hex.EncodeToString(digest[:])
}

// keySet returns the keys of a team as /cdn-cgi/access/certs at its address publishes them.
func keySet(team string) any {
	public := keyOf(team).PublicKey
	return map[string]any{"keys": []map[string]string{{
		"kid": keyID(team), "kty": "RSA", "alg": algorithm, "use": "sig",
		"n": base64.RawURLEncoding.EncodeToString(public.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(public.E)).Bytes()),
	}}}
}
