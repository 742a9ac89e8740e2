package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Settings are the originRequest keys that an [v1alpha1.OriginRequest] has too, by name. Durations are in seconds.
type Settings map[string]Setting

// Setting is a bool, an int64 or a string.
type Setting struct {
	Value any
	Line  int
}

func (s Settings) isTrue(name string) bool { return s[name].Value == true }

func (s Settings) text(name string) string {
	text, _ := s[name].Value.(string)
	return text
}

// originKind is a key's type.
type originKind int8

const (
	kindFlag originKind = iota
	kindNumber
	kindText
	kindDuration
)

// originKeys are the keys with an equivalent, as in cloudflared's OriginRequestConfig.
var originKeys = map[string]originKind{
	"connectTimeout": kindDuration, "tlsTimeout": kindDuration, "tcpKeepAlive": kindDuration, "keepAliveTimeout": kindDuration,
	"keepAliveConnections": kindNumber,
	"noHappyEyeballs":      kindFlag, "matchSNItoHost": kindFlag, "noTLSVerify": kindFlag, "disableChunkedEncoding": kindFlag, "http2Origin": kindFlag,
	"httpHostHeader": kindText, "originServerName": kindText, "caPool": kindText, "proxyType": kindText,
}

// defaults are cloudflared's values for keys that are not set.
var defaults = map[string]any{
	"connectTimeout": int64(30), "tlsTimeout": int64(10), "tcpKeepAlive": int64(30), "keepAliveTimeout": int64(90), "keepAliveConnections": int64(100),
}

// value returns a key's value, or cloudflared's default.
func (s Settings) value(name string) any {
	if setting, ok := s[name]; ok {
		return setting.Value
	}
	if value, ok := defaults[name]; ok {
		return value
	}
	return map[originKind]any{kindFlag: false, kindText: ""}[originKeys[name]]
}

// proxyKeys are the keys for services that carry TCP connections of clients.
var proxyKeys = []string{"proxyAddress", "proxyPort", "ipRules"}

// readOrigin reads an originRequest into the settings. access reads its access block.
func (c *Configuration) readOrigin(n *yaml.Node, path string, into Settings, access func(entry)) {
	for _, e := range c.entries(n, path) {
		key := path + "." + e.key
		switch kind, known := originKeys[e.key]; {
		case e.key == "access":
			access(e)
		case known:
			c.readSetting(e, kind, key, into)
		case e.key == "bastionMode":
			c.readSetting(e, kindFlag, key, into)
		case slices.Contains(proxyKeys, e.key):
			c.add(NoteInfo, e.line, key, "only applies to services such as bastion and socks-proxy, which the controller does not serve", "keep their rules on the old tunnel")
		default:
			c.add(NoteInfo, e.line, key, "cloudflared does not know this key and ignores it, and so does convert", "")
		}
	}
}

// readSetting reads one key.
func (c *Configuration) readSetting(e entry, kind originKind, key string, into Settings) {
	if isNull(e.value) {
		c.add(NoteInfo, e.line, key, "has no value and no effect", "")
		return
	}
	value, err := c.decode(e, kind)
	if err != nil {
		c.fail(e.line, key, "%v", err)
		return
	}
	if problem := unsupportedValue(e.key, kind, value); problem != "" {
		c.add(NoteDifferent, e.line, key, problem, "the default of the TunnelConfiguration applies")
		return
	}
	if d, ok := value.(time.Duration); ok {
		seconds := int64(math.Ceil(d.Seconds()))
		if time.Duration(seconds)*time.Second != d {
			c.add(NoteDifferent, e.line, key, fmt.Sprintf("%s is not a whole number of seconds", d), fmt.Sprintf("the converted value is %ds", seconds))
		}
		value = seconds
	}
	into[e.key] = Setting{value, e.line}
	if e.key == "bastionMode" && value == false {
		c.add(NoteInfo, e.line, key, "false is the default", "")
	}
}

// decode decodes a value as cloudflared does: a duration is a text such as 30s in a file,
// and whole seconds in a remote configuration.
func (c *Configuration) decode(e entry, kind originKind) (any, error) {
	var err error
	switch kind {
	case kindFlag:
		var flag bool
		err = e.value.Decode(&flag)
		return flag, plain(err, "must be true or false")
	case kindText:
		var text string
		err = e.value.Decode(&text)
		return text, plain(err, "must be a string")
	case kindDuration:
		if !c.remote {
			var d time.Duration
			err = e.value.Decode(&d)
			return d, plain(err, "must be a duration such as 30s")
		}
		var seconds int64
		err = e.value.Decode(&seconds)
		return time.Duration(seconds) * time.Second, plain(err, "must be a number of seconds")
	default:
		var number int64
		err = e.value.Decode(&number)
		return number, plain(err, "must be a number")
	}
}

func plain(err error, text string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", text)
}

// textSyntax has what the validation of a TunnelConfiguration accepts.
var textSyntax = map[string]*regexp.Regexp{
	"httpHostHeader":   regexp.MustCompile(`^[0-9A-Za-z._:\[\]-]{0,259}$`),
	"originServerName": regexp.MustCompile(`^([0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?([.][0-9A-Za-z_]([0-9A-Za-z_-]*[0-9A-Za-z_])?)*)?$`),
	"caPool":           regexp.MustCompile(`^`),
	"proxyType":        regexp.MustCompile(`^(socks)?$`),
}

// maxDuration is what a [v1alpha1.Duration] can express.
const maxDuration = 99999 * time.Hour

// unsupportedValue returns why a TunnelConfiguration cannot have the value, or "".
func unsupportedValue(name string, kind originKind, value any) string {
	switch kind {
	case kindDuration:
		if d := value.(time.Duration); d <= 0 || d > maxDuration {
			return fmt.Sprintf("a TunnelConfiguration cannot express the duration %s", d)
		}
	case kindNumber:
		if n := value.(int64); n < 1 || n > math.MaxInt32 {
			return fmt.Sprintf("a TunnelConfiguration cannot express the number %d", n)
		}
	case kindFlag:
	case kindText:
		if text := value.(string); !textSyntax[name].MatchString(text) {
			return fmt.Sprintf("a TunnelConfiguration cannot have the value %q", text)
		}
	}
	return ""
}

// own returns a rule's settings that differ from the ones for all rules, without what has
// no effect in cloudflared.
func (c *converter) own(r *Rule) Settings {
	effective, own := c.input.effective(r), Settings{}
	for name, setting := range r.Own {
		if c.settingFor(name, effective, r) && (Settings{name: setting}).value(name) != c.origin().value(name) {
			own[name] = setting
		}
	}
	return own
}

// origin returns the settings for all rules, without what has no effect.
func (c *converter) origin() Settings {
	origin := maps.Clone(c.input.Origin)
	delete(origin, "bastionMode")
	delete(origin, "caPool")
	if origin.isTrue("matchSNItoHost") {
		delete(origin, "http2Origin")
	}
	maps.DeleteFunc(origin, func(name string, setting Setting) bool { return !c.supports(name, setting) })
	return origin
}

// connectorKeysOnly are the settings that only connectors have, and not Envoy.
var connectorKeysOnly = []string{"keepAliveConnections", "noHappyEyeballs", "matchSNItoHost", "disableChunkedEncoding", "proxyType"}

// supports reports whether the data plane has the setting.
func (c *converter) supports(name string, setting Setting) bool {
	isDefault := name != "keepAliveConnections" && setting.Value == (Settings{}).value(name)
	return c.DataPlane != v1alpha1.DataPlaneEnvoy || isDefault || !slices.Contains(connectorKeysOnly, name)
}

const envoyLacks = "Envoy, which connects to the backends, has no such setting"

// noteOrigin notes the settings for all rules that are lost.
func (c *converter) noteOrigin() {
	for name, setting := range c.input.Origin {
		switch {
		case !c.supports(name, setting):
			c.addTop(NoteDifferent, "originRequest."+name, Value{Line: setting.Line}, envoyLacks, "")
		case name == "http2Origin" && setting.Value == true && c.input.Origin.isTrue("matchSNItoHost"):
			c.addTop(NoteInfo, "originRequest."+name, Value{Line: setting.Line}, noHTTP2, "")
		}
	}
}

const noHTTP2 = "has no effect in cloudflared together with matchSNItoHost"

// settingFor reports whether a listener can have a rule's setting, and notes what it
// cannot have.
func (c *converter) settingFor(name string, effective Settings, r *Rule) bool {
	switch {
	case name == "bastionMode" || name == "caPool":
		return false
	case !c.supports(name, r.Own[name]):
		c.note(NoteDifferent, r, "originRequest."+name, envoyLacks, "")
		return false
	case name == "http2Origin" && effective.isTrue("http2Origin") && effective.isTrue("matchSNItoHost"):
		c.note(NoteInfo, r, "originRequest."+name, noHTTP2, "")
		return false
	case r.Own[name].Value == "" && c.origin().text(name) != "":
		c.note(NoteDifferent, r, "originRequest."+name, "an empty value cannot replace the value for all rules", "move the value from the top level to the rules that need it")
		return false
	}
	return true
}

// originRequest returns the settings in the API's form.
func (s Settings) originRequest() *v1alpha1.OriginRequest {
	if len(s) == 0 {
		return nil
	}
	fields := map[string]any{}
	for name, setting := range s {
		fields[name] = setting.Value
		if seconds, ok := setting.Value.(int64); ok && originKeys[name] == kindDuration {
			fields[name] = durationText(seconds)
		}
	}
	var o v1alpha1.OriginRequest
	text, _ := json.Marshal(fields) // booleans, integers and strings always marshal
	if err := json.Unmarshal(text, &o); err != nil || reflect.ValueOf(o).IsZero() {
		return nil
	}
	return &o
}

// durationText returns the seconds in hours, minutes and seconds.
func durationText(seconds int64) v1alpha1.Duration {
	var text strings.Builder
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := seconds / unit.seconds; n > 0 {
			fmt.Fprintf(&text, "%d%s", n, unit.name)
		}
		seconds %= unit.seconds
	}
	return v1alpha1.Duration(text.String())
}

// key identifies settings with the same effect.
func (s Settings) key() string {
	values := map[string]any{}
	for name, setting := range s {
		values[name] = setting.Value
	}
	text, _ := json.Marshal(values) // with sorted keys
	return string(text)
}
