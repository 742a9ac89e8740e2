package config

import "strings"

// Secret is a string that is never printed.
type Secret string

// String hides the secret from fmt and from logs.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(hidden)"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// secretValue is a flag value that is never printed.
type secretValue Secret

// String implements pflag.Value.
func (s *secretValue) String() string { return Secret(*s).String() }

// Set implements pflag.Value. It removes white space at both ends, such as a file's last
// line break.
func (s *secretValue) Set(value string) error {
	*s = secretValue(strings.TrimSpace(value))
	return nil
}

// Type implements pflag.Value.
func (*secretValue) Type() string { return "string" }
