package web

import (
	"context"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// readTimeout limits how long a page waits for the objects that only its request needs.
const readTimeout = 10 * time.Second

// whyPage explains a request as plan --why does.
type whyPage struct {
	Form whyForm
	// Introduction, Traces and Remarks are empty without a valid request.
	Introduction []plan.Line
	Traces       []whyTrace
	Remarks      []plan.Step
	// Unserved is the warning that no route answers; empty if one does.
	Unserved string
	Mistakes []plan.Mistake
	// Complete is a link to the page with complete lists; empty if the lists are complete.
	Complete string
}

// whyForm is what a visitor asks.
type whyForm struct {
	URL     string
	Method  string
	Headers []whyHeader
	// More is how many empty fields for headers the next page has.
	More int
	// Problem is what is wrong with the URL; empty if nothing is.
	Problem string
	// Asked reports whether the form was sent.
	Asked bool
}

// whyHeader is a field for a header.
type whyHeader struct {
	Number        int
	Text, Problem string
}

// why explains the request in the query.
func why(v *visit) (any, error) {
	query := v.URL.Query()
	page := &whyPage{Form: newWhyForm(query)}
	request, asked := page.Form.request()
	if !asked {
		return page, nil
	}
	ctx, cancel := context.WithTimeout(v.Context(), readTimeout)
	defer cancel()
	p, err := v.Plan.ForRequest(ctx, request)
	if p == nil {
		return nil, err
	}
	explanation := p.Explain(request)
	if err != nil {
		explanation.Unknown = append(explanation.Unknown, "which endpoints the backends have: "+err.Error())
	}
	page.Unserved = p.Unserved(request)
	if part := p.For(request); part != p {
		page.Mistakes = part.Mistakes
	}
	page.explain(explanation, query)
	return page, nil
}

// explain adds the explanation. The parameter limit is set for complete lists.
func (p *whyPage) explain(e *plan.Explanation, query url.Values) {
	style := plan.Style{Wide: query.Get("limit") != ""}
	p.Introduction, p.Remarks = e.Introduction(), e.Remarks(style)
	isShort := !reflect.DeepEqual(p.Remarks, e.Remarks(plan.Style{Wide: true}))
	for i := range e.Traces {
		t := newWhyTrace(&e.Traces[i], e.Request, style)
		p.Traces = append(p.Traces, t)
		isShort = isShort || t.isShort
	}
	if isShort {
		query.Set("limit", "all")
		p.Complete = "/why?" + query.Encode()
	}
}

// maxHeaderFields is how many empty fields for headers a form has at most.
const maxHeaderFields = 20

func newWhyForm(query url.Values) whyForm {
	f := whyForm{URL: strings.TrimSpace(query.Get("url")), Method: strings.TrimSpace(query.Get("method")), Asked: query.Has("url")}
	for _, text := range query["header"] {
		if strings.TrimSpace(text) != "" {
			f.addHeader(text)
		}
	}
	empty, err := strconv.Atoi(query.Get("fields"))
	if err != nil || empty < 1 {
		empty = 1
	}
	empty = min(empty, maxHeaderFields)
	for range empty {
		f.addHeader("")
	}
	f.More = empty + 1
	return f
}

func (f *whyForm) addHeader(text string) {
	f.Headers = append(f.Headers, whyHeader{Number: len(f.Headers) + 1, Text: text})
}

// request returns the request. It adds what is wrong to the fields, and reports whether the
// form asks for a valid request.
func (f *whyForm) request() (r routing.Request, ok bool) {
	if !f.Asked {
		return r, false
	}
	r, err := routing.ParseRequest(f.URL)
	if ok = err == nil; !ok {
		f.Problem = err.Error()
	}
	r.Method = strings.ToUpper(f.Method)
	for i := range f.Headers {
		h := &f.Headers[i]
		if h.Text == "" {
			continue
		}
		if err := r.AddHeader(h.Text); err != nil {
			h.Problem, ok = err.Error(), false
		}
	}
	return r, ok
}
