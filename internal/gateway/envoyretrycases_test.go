package gateway_test

import "slices"

// retryFields are the fields of retries, and sessions.
var retryFields = []routeField{
	{"retry attempts", retried("attempts: VALUE"), slices.Concat(each(served, 1, 2, 10), each(refused("retry.attempts: 11 is not between 1 and 10"), 11), each(refused("attempts"), 2147483647, 4294967297), each(api, 0, -1, 1.5, "1"))},
	{"retry code", retried("codes: [VALUE]"), slices.Concat(each(served, 400, 404, 429, 500, 503, 599), each(api, 0, 200, 399, 600, -500, 4294967796, "500", 500.5))},
	{"retry codes", retried("codes: VALUE"), slices.Concat(each(served, []any{}, []any{500, 502, 503, 504}, allErrors()), each(api, []any{500, 500}, 500))},
	{"retry backoff", retried("backoff: VALUE"), slices.Concat(words(refused("retry.backoff: retries can begin before "), "0s 1ms 25ms 99999h"), words(api, "1 -1s 1.5s"), each(api, ""))},
	{"retry of a timeout", "HTTPRoute rules: [{timeouts: {backendRequest: VALUE}, retry: {codes: [503], attempts: 10}, backendRefs: [{name: web, port: 80}]}]", durations},
	{"retry with weights", "HTTPRoute rules: [{retry: {codes: [503]}, backendRefs: [{name: web, port: 80, weight: VALUE}, {name: h2c, port: 80}]}]", each(served, 0, 1)},
	{"retry of a redirect", "HTTPRoute rules: [{retry: {codes: [VALUE]}, filters: [{type: RequestRedirect, requestRedirect: {}}]}]", each(served, 503)},
	{"session name", "HTTPRoute rules: [{sessionPersistence: {sessionName: VALUE}, backendRefs: [{name: web, port: 80}]}]", words(refused("sessionPersistence: instead"), "a a%b")},
	{"gRPC session name", "GRPCRoute rules: [{sessionPersistence: {sessionName: VALUE}, backendRefs: [{name: h2c, port: 80}]}]", words(refused("sessionPersistence: instead"), "a")},
}

func retried(fields string) string {
	return "HTTPRoute rules: [{retry: {" + fields + "}, backendRefs: [{name: web, port: 80}]}]"
}

// allErrors returns all status codes that a route can name.
func allErrors() []any {
	var all []any
	for code := 400; code < 600; code++ {
		all = append(all, code)
	}
	return all
}
