package secrets

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

const (
	// SigningKeyField is the field of the Secret with the key that signs the comments of
	// DNS records.
	SigningKeyField = "key"
	// SigningKeySize is the size of a generated key, and the minimum, in bytes. (Source:
	// RFC 2104, section 3: a key should not be shorter than the output of the hash.)
	SigningKeySize = 32
)

// SigningKey returns the key in the Secret, or an error that says why it is not valid.
func SigningKey(secret *corev1.Secret) ([]byte, error) {
	key := secret.Data[SigningKeyField]
	if len(key) < SigningKeySize {
		return nil, fmt.Errorf("its field %q has %d bytes, and at least %d are required", SigningKeyField, len(key), SigningKeySize)
	}
	return key, nil
}
