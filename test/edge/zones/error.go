package zones

import (
	"fmt"
	"net/http"
)

// Codes of the API's errors about records.
const (
	CodeInvalidRecord = 1004  // "DNS Validation Error": used where no code is known
	CodeInvalidName   = 9000  // timothymiller/cloudflare-ddns#91
	CodeNotProxiable  = 9004  // hashicorp/terraform#11991
	CodeInvalidA      = 9005  // yulewang/cloudflare-api-v4-ddns#16
	CodeInvalidAAAA   = 9006  // uncertain: by analogy with 9005
	CodeInvalidCNAME  = 9007  // uncertain: by analogy with 9005
	CodeInvalidTTL    = 9021  // ZE3kr/Cloudflare-CNAME-Setup#16
	CodeSelfReference = 9039  // kubernetes-sigs/external-dns#4749
	CodeTags          = 9300  // kubernetes-sigs/external-dns#3706
	CodeComment       = 9313  // STRRL/cloudflare-tunnel-ingress-controller#168
	CodeNoRecord      = 81044 // onedr0p/cluster-template#355
	CodeQuota         = 81045 // js-org/js.org#2873
	CodeHostExists    = 81053 // a CNAME beside an A, AAAA or CNAME: kubernetes-sigs/external-dns#2410
	CodeCNAMEExists   = 81054 // an A or AAAA beside a CNAME: favonia/cloudflare-ddns#990
	CodeNSExists      = 81056 // acme-dns/acme-dns#258
	// CodeIdentical is in issues since 2025 (jeessy2/ddns-go#1378). Issues before 2023 have
	// 81057, "The record already exists.", for the same mistake.
	CodeIdentical = 81058
)

// Error is an error of the API.
type Error struct {
	Status  int // of the HTTP response
	Code    int
	Message string
}

// Error returns the message and the code, as cloudflare-go prints them.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// invalid returns an error with the status 400.
func invalid(code int, format string, arguments ...any) error {
	return &Error{http.StatusBadRequest, code, fmt.Sprintf(format, arguments...)}
}

func noRecord() error {
	return &Error{http.StatusNotFound, CodeNoRecord, "Record does not exist."}
}

// sameName completes an error about two records with the same name.
const sameName = " For more details, refer to <https://developers.cloudflare.com/dns/manage-dns-records/troubleshooting/records-with-same-name/>."
