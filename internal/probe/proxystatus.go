package probe

import (
	"regexp"

	"github.com/dunglas/httpsfv"
)

// proxyName is the name of this product's Envoys in the header Proxy-Status (RFC 9209).
const proxyName = "tunnel-gateway"

// errorType is what the names of errors in RFC 9209 look like.
var errorType = regexp.MustCompile(`^[a-z_]{1,64}$`)

// proxyError returns the error that an Envoy of this product states in the values of the
// header Proxy-Status. Other proxies can add items to the list.
func proxyError(values []string) (code string, ok bool) {
	if len(values) == 0 {
		return "", false
	}
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		return "", false
	}
	for _, member := range list {
		item, isItem := member.(httpsfv.Item)
		if !isItem || name(item.Value) != proxyName {
			continue
		}
		if value, hasError := item.Params.Get("error"); hasError {
			if code = name(value); errorType.MatchString(code) {
				return code, true
			}
		}
		return "", true
	}
	return "", false
}

// name returns the text of a token or a string: RFC 9209 permits both for a proxy's name.
func name(value any) string {
	switch v := value.(type) {
	case httpsfv.Token:
		return string(v)
	case string:
		return v
	}
	return ""
}
