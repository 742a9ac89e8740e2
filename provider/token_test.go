package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func encoded(text string) Token {
	return Token(base64.StdEncoding.EncodeToString([]byte(text)))
}

func TestFormattingHidesTheToken(t *testing.T) {
	token := Token("sesame")
	holder := struct{ Token Token }{token}
	for _, value := range []any{token, &token, holder, &holder, []Token{token}, map[string]Token{"a": token}} {
		var all strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
			fmt.Fprintf(&all, verb+"\n", value)
		}
		marshalled, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(marshalled)
		for _, form := range []string{"sesame", "736573616d65", "736573616D65", "0x73, 0x65"} {
			if strings.Contains(all.String(), form) {
				t.Errorf("%T shows the token as %s", value, form)
			}
		}
	}
	if got := token.String() + Token("").String(); got != "(hidden)" {
		t.Errorf("got %q", got)
	}
}

func TestTokenContainsItsCredentials(t *testing.T) {
	account, id, err := encoded(`{"a":"account","t":"tunnel","s":"c2VzYW1l"}`).Credentials()
	if err != nil || account != "account" || id != "tunnel" {
		t.Errorf("got %q, %q, %v", account, id, err)
	}
}

func TestInvalidTokensHaveNoCredentials(t *testing.T) {
	tokens := map[string]Token{
		"empty":             "",
		"not base64":        "sesame!",
		"not JSON":          encoded("sesame"),
		"another type":      encoded(`["sesame"]`),
		"no account":        encoded(`{"t":"sesame","s":"c2VzYW1l"}`),
		"no tunnel":         encoded(`{"a":"sesame","s":"c2VzYW1l"}`),
		"no secret":         encoded(`{"a":"sesame","t":"tunnel"}`),
		"secret not base64": encoded(`{"a":"account","t":"tunnel","s":"sesame!"}`),
		"truncated":         encoded(`{"a":"account","t":"tunnel","s":"c2VzYW1l"}`)[:20],
	}
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			account, id, err := token.Credentials()
			if err == nil || account != "" || id != "" {
				t.Fatalf("got %q, %q, %v, want an error", account, id, err)
			}
			if strings.Contains(err.Error(), "sesame") || token != "" && strings.Contains(err.Error(), string(token)) {
				t.Errorf("error %q contains the token", err)
			}
		})
	}
}
