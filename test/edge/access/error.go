package access

import (
	"fmt"
	"net/http"
)

// Codes of the API's errors.
const (
	// CodeApplicationExists is for an application with the same hostname and path, with the
	// status 409 (ChrispyBacon-dev/DockFlare#217).
	CodeApplicationExists = 11010
	// CodeUnknownApplication has the status 404.
	CodeUnknownApplication = 11021
	// CodeInvalidRequest is for most mistakes in a request: only the text tells them apart.
	// It is known for a hostname without an active zone in the account, and for a tag that
	// does not exist. For too many applications it is uncertain, and chosen by analogy with
	// other limits, such as that of certificates.
	CodeInvalidRequest = 12130
	// CodePolicyNotFound is for a policy that does not exist. The code and the status are
	// uncertain.
	CodePolicyNotFound = 12131
	// CodeTagExists is uncertain.
	CodeTagExists = 12132
)

// Error is an error of the API.
type Error struct {
	Status int // of the HTTP response
	Code   int
	Text   string
}

// Error returns the text and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// invalid returns an error with the status 400.
func invalid(format string, arguments ...any) error {
	return &Error{http.StatusBadRequest, CodeInvalidRequest, "access.api.error.invalid_request: " + fmt.Sprintf(format, arguments...)}
}

func unknownApplication() error {
	return &Error{http.StatusNotFound, CodeUnknownApplication, "access.api.error.unknown_application"}
}

func applicationExists() error {
	return &Error{http.StatusConflict, CodeApplicationExists, "access.api.error.application_already_exists"}
}

func tooManyApplications() error {
	return invalid("maximum number of applications has been reached")
}

func policyNotFound() error {
	return &Error{http.StatusNotFound, CodePolicyNotFound, "access.api.error.policy_not_found"}
}

func tagExists() error {
	return &Error{http.StatusConflict, CodeTagExists, "access.api.error.conflict: tag already exists"}
}
