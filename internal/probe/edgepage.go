package probe

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Cloudflare writes its errors in four formats. (Sources: its documentation of error
// responses describes JSON and Markdown; text and HTML are as public reports show them.)
// A backend that writes the same words looks like Cloudflare.
var (
	// plainError is the whole body for a client that does not ask for HTML.
	plainError = regexp.MustCompile(`^error code: (\d{3,4})$`)
	// markdownError is the field in the front matter.
	markdownError = regexp.MustCompile(`(?m)^error_code: (\d{3,4})$`)
	// htmlErrors find the number in a page with one of the marks.
	htmlErrors = []*regexp.Regexp{
		regexp.MustCompile(`class="cf-error-code">\s*(\d{3,4})\s*<`),
		regexp.MustCompile(`class="code-label">\s*Error code\s+(\d{3,4})\s*<`),
		regexp.MustCompile(`data-translate="error">\s*Error\s*</span>\s*<span[^>]*>\s*(\d{3,4})\s*<`),
		regexp.MustCompile(`<title>[^<]*\|\s*(5\d\d):[^<]*</title>`),
	}
	htmlMarks = []string{"cf-error-details", "cf-wrapper", "/cdn-cgi/styles/"}
	// blockPage is the WAF's page, which has no number.
	blockPage = regexp.MustCompile(`<title>Attention Required! \| Cloudflare</title>`)
	// accessPage is the page with which Cloudflare Access refuses an application.
	accessPage = regexp.MustCompile(`<title>[^<]*Cloudflare Access[^<]*</title>`)
)

// edgeError returns the number of Cloudflare's error. Without a page, for example after a HEAD
// request, it is the status if no server but Cloudflare's uses that status.
func (o observation) edgeError() (code string, ok bool) {
	if o.status < 400 {
		return "", false
	}
	for _, read := range []func(observation) string{
		observation.headerCode, observation.plainCode, observation.jsonCode, observation.markdownCode, observation.htmlCode,
	} {
		if code := read(o); o.isPlausible(code) {
			return code, true
		}
	}
	bare502 := o.status == http.StatusBadGateway && o.isBare() // cloudflared's answer without the edge's page
	return strconv.Itoa(o.status), bare502 || o.status >= 520 && o.status <= 530
}

// isPlausible reports whether Cloudflare answers the error with this status: an error with
// three digits is the status itself.
func (o observation) isPlausible(code string) bool {
	return len(code) == 4 || code != "" && code == strconv.Itoa(o.status)
}

// headerCode reads the header that Cloudflare adds to its own errors.
func (o observation) headerCode() string {
	code := strings.TrimSpace(o.header.Get("Cf-Error-Type"))
	if _, err := strconv.ParseUint(code, 10, 16); err != nil || len(code) < 3 || len(code) > 4 {
		return ""
	}
	return code
}

func (o observation) plainCode() string { return firstGroup(plainError, bytes.TrimSpace(o.body)) }

func (o observation) jsonCode() string {
	var problem struct {
		Cloudflare bool   `json:"cloudflare_error"`
		Code       uint16 `json:"error_code"`
	}
	if json.Unmarshal(o.body, &problem) != nil || !problem.Cloudflare {
		return ""
	}
	return strconv.Itoa(int(problem.Code))
}

func (o observation) markdownCode() string {
	if !bytes.HasPrefix(o.body, []byte("---\n")) || !bytes.Contains(o.body, []byte("\ncloudflare_error: true\n")) {
		return ""
	}
	return firstGroup(markdownError, o.body)
}

func (o observation) htmlCode() string {
	if !isHTML(o.header) {
		return ""
	}
	if o.status == 403 && blockPage.Match(o.body) {
		return codeBlocked
	}
	marked := false
	for _, mark := range htmlMarks {
		marked = marked || bytes.Contains(o.body, []byte(mark))
	}
	for _, expression := range htmlErrors {
		if code := firstGroup(expression, o.body); marked && code != "" {
			return code
		}
	}
	return ""
}

// codeBlocked is the error if the WAF blocks a request.
const codeBlocked = "1020"

func firstGroup(expression *regexp.Regexp, text []byte) string {
	groups := expression.FindSubmatch(text)
	if groups == nil {
		return ""
	}
	return string(groups[1])
}
