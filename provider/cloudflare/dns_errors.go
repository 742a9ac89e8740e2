package cloudflare

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// API error codes about records.
const (
	codeInvalidRecord  = 1004  // "DNS Validation Error"
	codeNoRecord       = 81044 // the record does not exist
	codeQuotaExceeded  = 81045 // the zone has too many records
	codeHostExists     = 81053 // a CNAME beside an A, AAAA or CNAME record
	codeCNAMEExists    = 81054 // a record beside a CNAME record
	codeNSExists       = 81056 // a record beside an NS record
	codeRecordExists   = 81057 // an identical record, until about 2023
	codeIdentical      = 81058 // an identical record
	firstCodeOfRecords = 9000  // codes up to 9999 are about a field of a record
	lastCodeOfRecords  = 9999
)

// send makes one API call like [connection.call], and returns the errors of a
// [provider.DNS].
func (d *DNS) send(ctx context.Context, mode retryMode, call func(options ...option.RequestOption) error) error {
	err := d.call(ctx, mode, call)
	if e, ok := errors.AsType[*responseError](err); ok {
		e.class = dnsClass(e)
	}
	return err
}

// dnsClass returns the error of a [provider.DNS] for an error response, or nil.
func dnsClass(e *responseError) error {
	has := func(codes ...int64) bool {
		return slices.ContainsFunc(codes, func(code int64) bool { return slices.Contains(e.codes, code) })
	}
	switch {
	case e.status >= http.StatusInternalServerError:
		return nil
	case e.status == http.StatusUnauthorized:
		return provider.ErrUnauthorized
	case e.status == http.StatusForbidden:
		return provider.ErrForbidden
	case has(codeHostExists, codeCNAMEExists, codeNSExists, codeRecordExists, codeIdentical):
		return provider.ErrRecordExists
	case has(codeNoRecord):
		return provider.ErrRecordNotFound
	case has(codeQuotaExceeded):
		return provider.ErrQuotaExceeded
	case slices.ContainsFunc(e.codes, isRecordCode):
		return provider.ErrInvalidRecord
	}
	return nil
}

// isRecordCode reports whether an error is about a field of a record.
func isRecordCode(code int64) bool {
	return code == codeInvalidRecord || code >= firstCodeOfRecords && code <= lastCodeOfRecords
}
