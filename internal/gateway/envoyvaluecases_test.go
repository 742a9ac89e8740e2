package gateway_test

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// routeField is a route field and values for it. spec has the route's kind and its spec.
type routeField struct {
	name, spec string
	values     []routeValue
}

// fieldMessages are the parts that each message about a field's values has.
var fieldMessages = map[string]string{
	"path RegularExpression": "path: ", "header expression": "header x-a: ", "query expression": "query parameter a: ",
	"gRPC service expression": "service: ", "gRPC method expression": "method: ", "gRPC header expression": "header x-a: ",
	"request set name": "filter RequestHeaderModifier: ", "request remove name": "filter RequestHeaderModifier: header ",
	"response remove name": "filter ResponseHeaderModifier: ", "response add value": "filter ResponseHeaderModifier: value of header x-a ",
	"rewrite ReplaceFullPath": "filter URLRewrite: replacement path ", "redirect ReplacePrefixMatch": "filter RequestRedirect: replacement path ",
}

// each returns the values with one outcome.
func each(want outcome, values ...any) []routeValue {
	all := make([]routeValue, len(values))
	for i, v := range values {
		all[i] = routeValue{v, want}
	}
	return all
}

// words returns the words in a text as values with one outcome.
func words(want outcome, text string) []routeValue {
	var all []routeValue
	for _, word := range strings.Fields(text) {
		all = append(all, routeValue{word, want})
	}
	return all
}

// filtered returns an HTTPRoute spec with a filter.
func filtered(filter string) string {
	return "HTTPRoute rules: [{filters: [{" + filter + "}], backendRefs: [{name: web, port: 80}]}]"
}

// redirected returns an HTTPRoute spec with a redirect.
func redirected(match, redirect string) string {
	return "HTTPRoute rules: [{matches: [{" + match + "}], filters: [{type: RequestRedirect, requestRedirect: {" + redirect + "}}]}]"
}

// matched returns an HTTPRoute spec with a match.
func matched(match string) string {
	return "HTTPRoute rules: [{matches: [{" + match + "}], backendRefs: [{name: web, port: 80}]}]"
}

// called returns a GRPCRoute spec with a match.
func called(match string) string {
	return "GRPCRoute rules: [{matches: [{" + match + "}], backendRefs: [{name: h2c, port: 80}]}]"
}

var routeFields = slices.Concat(headerFields, pathFields, redirectFields, matchFields, corsFields, backendFields, retryFields)

// framing are the header names that no route may change.
const framing = "host Host HOST content-length Content-Length transfer-encoding Transfer-Encoding connection Connection keep-alive " +
	"proxy-connection te TE trailer upgrade x-envoy-retry-on X-Envoy-Upstream-Rq-Timeout-Ms x-envoy-"

// changeable are header names that routes may change.
const changeable = "x-a X-A a 0 a_b a.b !#$%&'*+-.^_`|~ x-forwarded-for X-Forwarded-Proto x-forwarded-host x-request-id cookie Set-Cookie authorization " +
	"content-type content-encoding date server via grpc-status grpc-timeout cf-ray x_envoy_a xenvoy expect accept-encoding sec-websocket-key"

var headerFields = []routeField{
	{
		"request set name", filtered("type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: VALUE, value: v}]}"), slices.Concat(
			words(served, changeable), words(refused("must not be changed"), framing), words(api, `:path :authority :status :method a:b a/b a(b) "a" é a=b [a]`),
			each(api, "", " ", "a b", "a\n", "a\r\nb", "a\x00", "a\t", "\u2028", strings.Repeat("a", 257)), each(served, strings.Repeat("a", 256)),
		),
	},
	{
		"request add name", filtered("type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: VALUE, value: v}]}"), slices.Concat(
			words(served, "x-a cookie"), words(refused("must not be changed"), framing), words(api, ":path é"),
		),
	},
	{
		"request remove name", filtered("type: RequestHeaderModifier, requestHeaderModifier: {remove: [VALUE]}"), slices.Concat(
			words(served, changeable), words(refused("must not be changed"), framing),
			words(refused("which is not valid"), ":path :authority :status :method : a:b a/b é a=b {a} @"),
			each(refused("which is not valid"), "", " ", "a b", "a\n", "\na", "a\r\nb", "a\x00b", "a\t", "a\x7f", "\u2028", "\ufffd"), each(served, strings.Repeat("a", 4000)),
		),
	},
	{"request remove case", filtered("type: RequestHeaderModifier, requestHeaderModifier: {remove: VALUE}"), slices.Concat(
		each(refused("several changes to header X-A"), []any{"x-a", "X-A"}), each(api, []any{"x-a", "x-a"}), each(served, []any{}, []any{"a", "b"}),
	)},
	{
		"response set name", filtered("type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: VALUE, value: v}]}"),
		slices.Concat(words(served, changeable), words(refused("must not be changed"), framing), words(api, ":status é")),
	},
	{
		"response remove name", filtered("type: ResponseHeaderModifier, responseHeaderModifier: {remove: [VALUE]}"),
		slices.Concat(words(served, "x-a set-cookie server date"), words(refused("must not be changed"), framing), words(refused("which is not valid"), ":status é")),
	},
	{"request set value", filtered("type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: VALUE}]}"), headerValues},
	{"request add value", filtered("type: RequestHeaderModifier, requestHeaderModifier: {add: [{name: x-a, value: VALUE}]}"), headerValues},
	{"response add value", filtered("type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: x-a, value: VALUE}]}"), headerValues},
	{"set and add", filtered("type: RequestHeaderModifier, requestHeaderModifier: VALUE"), slices.Concat(
		each(refused("several changes to header X-A"), map[string]any{"set": []any{nameAndValue("x-a")}, "add": []any{nameAndValue("X-A")}}),
		each(refused("several changes to header X-A"), map[string]any{"set": []any{nameAndValue("x-a"), nameAndValue("X-A")}}),
		each(refused("several changes to header x-a"), map[string]any{"set": []any{nameAndValue("x-a")}, "remove": []any{"x-a"}}),
		each(api, map[string]any{"set": []any{nameAndValue("x-a"), nameAndValue("x-a")}}),
		each(served, map[string]any{"set": []any{nameAndValue("x-a")}, "add": []any{nameAndValue("x-b")}, "remove": []any{"x-c"}}, map[string]any{}),
	)},
	{
		"gRPC set name", "GRPCRoute rules: [{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: VALUE, value: v}]}}], backendRefs: [{name: h2c, port: 80}]}]",
		slices.Concat(words(served, "x-a grpc-timeout"), words(refused("must not be changed"), framing), words(api, ":path")),
	},
}

func nameAndValue(name string) map[string]any { return map[string]any{"name": name, "value": "v"} }

// headerValues include "%", which Envoy expands, so that a value without escapes could
// read its environment.
var headerValues = slices.Concat(
	each(served, "v", " ", "a\tb", " a ", "é", "%", "%%", "100%", "%ENVIRONMENT(HOME)%", "%REQ(:authority)%", "%START_TIME(%s)%", "%DOWNSTREAM_REMOTE_ADDRESS%", "%UNKNOWN%",
		"%PER_REQUEST_STATE(a)%", "{{a}}", `\`, `"`, "\u0085", "\u2028", "\ufffd", strings.Repeat("a", 4096), strings.Repeat("%", 4096)),
	each(refused("header x-a with the control character"), "\n", "a\r\nb: c", "a\x00b", "\x01", "\x1f", "\x7f", "a\vb"),
	each(api, "", strings.Repeat("a", 4097)),
)

// replacements are paths that replace another one.
var replacements = slices.Concat(
	words(served, `/ /a /a/ // //evil.example.com /a//b /./a /../a /.. /%00 /%2e%2e /%2F /%c3%A9 /a;b=c /a:b@c /-._~!$&'()*+,;=:@ /.well-known/x`),
	words(refused("which is not a valid path"), `a a/b ? /a?b /a#b # /%zz /% /a%2 /é /a\b /\1 /\0 /a"b /<a> /{a} /a|b /a^b /%REQ(x)% `+"/`"),
	each(served, "", "/"+strings.Repeat("a", 1023)),
	each(refused("which is not a valid path"), " ", "/a b", "/a\n", "/a\r\nb", "/a\x00", "/a\x7f", "/\ufffd", "\u2028"), each(api, "/"+strings.Repeat("a", 1024), 1),
)

var pathFields = []routeField{
	{"rewrite ReplaceFullPath", filtered("type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: VALUE}}"), replacements},
	{"rewrite ReplacePrefixMatch of /", filtered("type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: VALUE}}"), replacements},
	{
		"rewrite ReplacePrefixMatch", "HTTPRoute rules: [{matches: [{path: {value: /a}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: VALUE}}}], " +
			"backendRefs: [{name: web, port: 80}]}]", replacements,
	},
	{
		"prefix that is replaced", "HTTPRoute rules: [{matches: [{path: {value: VALUE}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}], " +
			"backendRefs: [{name: web, port: 80}]}]", words(served, `/ /a /a.b /a+b /a*b /(a) /$a /a%5Cb /a%5bb /%C3%A9 /%c3%a9 /a%2e /a/%2e /a/%2e%2e /%2e /-.~_!$&'()*+,;=:@`),
	},
	{
		"match that is no prefix", "HTTPRoute rules: [{matches: [{path: VALUE}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}], " +
			"backendRefs: [{name: web, port: 80}]}]",
		each(api, map[string]any{"type": "Exact", "value": "/a"}, map[string]any{"type": "RegularExpression", "value": "/a"}),
	},
	{"rewrite hostname", filtered("type: URLRewrite, urlRewrite: {hostname: VALUE}"), hostnames},
}

var hostnames = slices.Concat(
	words(served, "a a.example.com 1.2.3.4 xn--bcher-kva.example a-b.c "+strings.Repeat("a.", 126)+"a"),
	words(api, "* *.example.com A.example.com a.example.com:80 -a a- a..b .a a. a_b é [::1] %REQ(x)% a/b "+strings.Repeat("a.", 127)+"a"), each(api, "", "a b", "a\n", "a\x00"),
)

var redirectFields = []routeField{
	{"redirect ReplaceFullPath", redirected("", "path: {type: ReplaceFullPath, replaceFullPath: VALUE}"), replacements},
	{"redirect ReplacePrefixMatch of /", redirected("", "path: {type: ReplacePrefixMatch, replacePrefixMatch: VALUE}"), replacements},
	{"redirect ReplacePrefixMatch", redirected("path: {value: /a}", "path: {type: ReplacePrefixMatch, replacePrefixMatch: VALUE}"), replacements},
	{"redirected prefix", redirected("path: {value: VALUE}", "path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}"), words(served, `/ /a. /a%5C /a/%2e /a/%2e%2E`)},
	{"redirect hostname", redirected("", "hostname: VALUE"), hostnames},
	{"redirect scheme", redirected("", "scheme: VALUE"), slices.Concat(words(served, "http https"), words(api, "HTTP ftp h2c http:"), each(api, "", 1))},
	{"redirect port", redirected("", "port: VALUE"), slices.Concat(each(served, 1, 80, 443, 8080, 65535), each(api, 0, -1, 65536, "80", 1.5))},
	{"redirect http port", redirected("", "scheme: http, port: VALUE"), each(served, 80, 443)},
	{"redirect statusCode", redirected("", "statusCode: VALUE"), slices.Concat(each(served, 301, 302, 303, 307, 308), each(api, 0, 200, 300, 304, 309, -301))},
	{"redirect nothing", redirected("", "statusCode: VALUE"), each(served, 302)},
}

// literalPaths are paths in matches.
var literalPaths = slices.Concat(
	words(served, `/ /a /a/ /a/b /a.b /.a /..a /a.. /a/...  /a%20b /a%c3%a9 /a%C3%A9 /%61 /a/%2E%2e/b /%2e /%2E /%2e%2e /a/%2e /a/%2e/ /a/%2e%2e /a/.%2e /a/%2e. /%5C /%5c..%5Ca /%25 /%2525 /%7F /%0a /%01 /%3F /%23a /%FF /a;b `+
		`/a:b@c /a+b /~a /* /a=b /-._~!$&'()*+,;=:@`),
	words(omitted("which Envoy rejects"), "/%00 /a%00b"),
	words(api, `a // /a//b /./a /a/./b /a/../b /a/. /a/.. /%2f /a%2Fb /a#b /a?b /é /a\b /%zz /% /a%2 /{a} /a|b /<a>`),
	each(api, "", "/a b", "/a\n", "/a\x00", "/"+strings.Repeat("a", 1024)), each(served, "/"+strings.Repeat("a", 1023)),
)

// textValues are header and query parameter values.
var textValues = slices.Concat(
	each(served, "1", " ", "a b", "é", "\n", "a\x00b", "\x7f", "%", "%ENVIRONMENT(HOME)%", "\ufffd", `\`, "*", strings.Repeat("a", 1024)), each(api, ""),
)

// tokens are header and query parameter names in matches.
var tokens = slices.Concat(words(served, "x-a X-A a.b !#$%&'*+-.^_`|~ cookie user-agent"), words(api, ":path :method :authority a[b] a/b é a=b"), each(api, "", "a b", "a\n", strings.Repeat("a", 257)))

var matchFields = []routeField{
	{"path Exact", matched("path: {type: Exact, value: VALUE}"), literalPaths},
	{"path PathPrefix", matched("path: {type: PathPrefix, value: VALUE}"), literalPaths},
	{"path RegularExpression", matched("path: {type: RegularExpression, value: VALUE}"), expressionValues},
	{"path type", matched("path: {type: VALUE, value: /a}"), slices.Concat(words(served, "Exact PathPrefix RegularExpression"), words(api, "Glob exact"), each(api, ""))},
	{"header name", matched("headers: [{name: VALUE, value: v}]"), slices.Concat(tokens, words(served, "host Host content-length te x_envoy_a"),
		words(omitted("which is removed before routes are matched"), "connection Connection x-envoy-internal X-Envoy-A x-envoy-"))},
	{"header value", matched("headers: [{name: x-a, value: VALUE}]"), slices.Concat(textValues, each(served, strings.Repeat("a", 4096)), each(api, strings.Repeat("a", 4097)))},
	{"header expression", matched("headers: [{name: x-a, type: RegularExpression, value: VALUE}]"), fewExpressions},
	{"query name", matched("queryParams: [{name: VALUE, value: v}]"), slices.Concat(tokens, words(served, "x-envoy-a connection"))},
	{"query value", matched("queryParams: [{name: a, value: VALUE}]"), slices.Concat(textValues, each(api, strings.Repeat("a", 1025)))},
	{"query expression", matched("queryParams: [{name: a, type: RegularExpression, value: VALUE}]"), fewExpressions},
	{"method", matched("method: VALUE"), slices.Concat(words(served, "GET HEAD POST PUT DELETE OPTIONS TRACE PATCH"), words(omitted("method CONNECT"), "CONNECT"), words(api, "get FOO"), each(api, ""))},
	{"gRPC service", called("method: {service: VALUE}"), slices.Concat(words(served, "a a.B _a .a a.b.c"), words(api, "a/b a-b a..b 1a é %41 a?"), each(api, "a b", "a\n"))},
	{"gRPC method", called("method: {method: VALUE}"), slices.Concat(words(served, "A a_b _a"), words(api, "a/b a.b 1a é"), each(api, "a\x00"))},
	{"gRPC service and method", called("method: {service: a.B, method: VALUE}"), words(served, "A get")},
	{"gRPC service expression", called("method: {type: RegularExpression, service: VALUE}"), fewGRPCExpressions},
	{"gRPC method expression", called("method: {type: RegularExpression, service: a.B, method: VALUE}"), fewGRPCExpressions},
	{"gRPC header", called("headers: [{name: VALUE, value: v}]"), slices.Concat(words(served, "x-a te"), words(omitted("which is removed"), "connection x-envoy-a"), words(api, ":path"))},
	{"gRPC header expression", called("headers: [{name: x-a, type: RegularExpression, value: VALUE}]"), fewExpressions},
	{"hostname", "HTTPRoute {hostnames: [VALUE], rules: [{backendRefs: [{name: web, port: 80}]}]}", slices.Concat(
		words(served, "a a.example.com *.example.com *.com a-b.example.com 1a.example.com"), words(api, "* *.*.com a.*.com A.example.com a.example.com:80 a_b é a. .a [::1]"), each(api, "", "a b"),
	)},
}

var corsFields = []routeField{
	{"CORS allowOrigins", filtered("type: CORS, cors: {allowOrigins: [VALUE]}"), slices.Concat(
		words(served, `* https://a.example.com http://a.example.com:80 https://a.example.com:443 https://a.example.com:99999 https://*.example.com https://*.example.com:443 https://* http://*:8080 https://A.Example.COM https://a-b http://1.2.3.4`),
		words(api, "a.example.com https:// https://a/ https://a_b ftp://a https://*a.example.com https://a.*.com null https://é https://a: https://[::1] https://(a) https://a|b"), each(api, "", "https://a b", "https://a\n"),
	)},
	{"CORS allowOrigins and credentials", filtered("type: CORS, cors: {allowOrigins: [VALUE], allowCredentials: true}"), words(served, "* https://a.example.com https://*.example.com")},
	{"CORS origins", filtered("type: CORS, cors: {allowOrigins: VALUE}"), slices.Concat(each(api, []any{"*", "https://a"}, []any{"https://a", "https://a"}), each(served, []any{}, []any{"https://a", "https://b"}, []any{"https://a", "https://A"}))},
	{"CORS allowMethods", filtered("type: CORS, cors: {allowMethods: [VALUE]}"), slices.Concat(words(served, "* GET POST OPTIONS CONNECT TRACE"), words(api, "get FOO"), each(api, ""))},
	{"CORS allowHeaders", filtered("type: CORS, cors: {allowHeaders: [VALUE]}"), slices.Concat(words(served, "* x-a X-A content-type !#$%&'*+-.^_`|~"), words(api, ":path é a,b"), each(api, "", "a b", "a\n"))},
	{"CORS exposeHeaders", filtered("type: CORS, cors: {exposeHeaders: [VALUE], allowCredentials: true}"), slices.Concat(words(served, "* x-a set-cookie"), words(api, ":path a,b"), each(api, ""))},
	{"CORS maxAge", filtered("type: CORS, cors: {maxAge: VALUE}"), slices.Concat(each(served, 1, 5, 2147483647), each(api, 0, -1, 2147483648, "5"))},
	{"CORS of a redirect", "HTTPRoute rules: [{filters: [{type: CORS, cors: {allowOrigins: [VALUE]}}, {type: RequestRedirect, requestRedirect: {}}]}]", words(refused(routing.IncompatibleFilters), "*")},
	{"CORS of the redirect of a backendRef", "HTTPRoute rules: [{filters: [{type: CORS, cors: {allowOrigins: [VALUE]}}], backendRefs: [{name: web, port: 80, filters: [{type: RequestRedirect, requestRedirect: {}}]}]}]",
		words(refused(routing.IncompatibleFilters), "*")},
}

var backendFields = []routeField{
	{"weight", "HTTPRoute rules: [{backendRefs: [{name: web, port: 80, weight: VALUE}, {name: tls, port: 80}]}]", slices.Concat(each(served, 0, 1, 1000000), each(api, -1, 1000001, "1", 0.5))},
	{"weights", "HTTPRoute rules: [{backendRefs: VALUE}]", slices.Concat(each(served, slices.Repeat([]any{map[string]any{"name": "web", "port": 80, "weight": 1000000}}, 16)), each(api, slices.Repeat([]any{map[string]any{"name": "web", "port": 80}}, 17)))},
	{"request timeout", "HTTPRoute rules: [{timeouts: {request: VALUE}, backendRefs: [{name: web, port: 80}]}]", durations},
	{"backendRequest timeout", "HTTPRoute rules: [{timeouts: {backendRequest: VALUE}, backendRefs: [{name: web, port: 80}]}]", durations},
	{"both timeouts", "HTTPRoute rules: [{timeouts: {request: 10s, backendRequest: VALUE}, backendRefs: [{name: web, port: 80}]}]", slices.Concat(words(served, "10s 0s 1ms"), words(api, "11s"))},
	{"mirror percent", mirrored("percent: VALUE"), slices.Concat(each(served, 0, 1, 50, 100), each(api, -1, 101, 0.5, "5"))},
	{"mirror fraction", mirrored("fraction: VALUE"), slices.Concat(
		each(served, ratio(0, 1), ratio(1, 1), ratio(1, 3), ratio(1, 2147483647), ratio(2147483647, 2147483647), map[string]any{"numerator": 5}),
		each(api, ratio(2, 1), ratio(-1, 2), ratio(0, 0), ratio(1, -1), map[string]any{}),
	)},
	{"mirrors", "HTTPRoute rules: [{filters: VALUE, backendRefs: [{name: web, port: 80}]}]", slices.Concat(
		each(served, slices.Repeat([]any{map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{"backendRef": map[string]any{"name": "web", "port": 80}}}}, 16)),
		each(api, slices.Repeat([]any{map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{"backendRef": map[string]any{"name": "web", "port": 80}}}}, 17)),
		each(refused("filter ExtensionRef"), []any{map[string]any{"type": "ExtensionRef", "extensionRef": map[string]any{"group": "", "kind": "ConfigMap", "name": "a"}}}),
		each(api, []any{map[string]any{"type": "ExternalAuth"}}),
	)},
	{"backendRef set name", ofBackend("type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: VALUE, value: v}]}"), slices.Concat(words(served, "x-a"), words(refused("backendRef filter RequestHeaderModifier: header"), "host x-envoy-a"))},
	{"backendRef set value", ofBackend("type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: VALUE}]}"), slices.Concat(words(served, "v %REQ(x)%"), each(refused("control character"), "\n"))},
	{"backendRef remove name", ofBackend("type: ResponseHeaderModifier, responseHeaderModifier: {remove: [VALUE]}"), slices.Concat(words(served, "x-a"), words(refused("backendRef filter ResponseHeaderModifier: header"), ":status connection"), each(refused("is not valid"), ""))},
	{"backendRef rewrite", ofBackend("type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: VALUE}}"), slices.Concat(words(served, "/ /a"), words(refused("backendRef filter URLRewrite: replacement path"), "/a?b a"))},
	{"backendRef hostname", ofBackend("type: URLRewrite, urlRewrite: {hostname: VALUE}"), words(served, "a.example.com")},
	{"backendRef redirect", ofBackend("type: RequestRedirect, requestRedirect: {hostname: VALUE}"), words(served, "a.example.com")},
	{"backendRef CORS", ofBackend("type: CORS, cors: {allowOrigins: [VALUE]}"), words(refused("backendRef filter CORS"), "*")},
	{"filters of two backendRefs", "HTTPRoute rules: [{backendRefs: [{name: web, port: 80, filters: VALUE}, {name: tls, port: 80}]}]", slices.Concat(
		each(served, []any{map[string]any{"type": "URLRewrite", "urlRewrite": map[string]any{"hostname": "a.example.com"}}}),
		each(refused("backendRef filter URLRewrite with several backendRefs"), []any{map[string]any{"type": "URLRewrite", "urlRewrite": map[string]any{"path": map[string]any{"type": "ReplaceFullPath", "replaceFullPath": "/a"}}}}),
		each(refused("backendRef filter RequestMirror with several backendRefs"), []any{map[string]any{"type": "RequestMirror", "requestMirror": map[string]any{"backendRef": map[string]any{"name": "web", "port": 80}}}}),
	)},
	{"filters of a backendRef of weight 0", "HTTPRoute rules: [{backendRefs: [{name: web, port: 80, weight: 0, filters: VALUE}, {name: tls, port: 80}, {name: h2c, port: 80}]}]", weightZeroFilters},
	{
		"rewrites of rule and backendRef", "HTTPRoute rules: [{filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: VALUE}}}], " +
			"backendRefs: [{name: web, port: 80, filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /b}}}]}]}]",
		words(refused("path rewrites in both the rule and a backendRef"), "/a"),
	},
	{"protocol", "HTTPRoute rules: [{backendRefs: [{name: VALUE, port: 80}]}]", words(served, "web tls h2c")},
	{"gRPC protocol", "GRPCRoute rules: [{backendRefs: [{name: VALUE, port: 80}]}]", words(served, "web tls h2c")},
}

// weightZeroFilters are filters that no data plane supports for one of several backends.
var weightZeroFilters = each(served,
	[]any{map[string]any{"type": "RequestRedirect", "requestRedirect": map[string]any{}}},
	[]any{map[string]any{"type": "RequestHeaderModifier", "requestHeaderModifier": map[string]any{"remove": []any{"Host"}}}},
)

func ratio(numerator, denominator int) map[string]any {
	return map[string]any{"numerator": numerator, "denominator": denominator}
}

func mirrored(fields string) string {
	return filtered("type: RequestMirror, requestMirror: {backendRef: {name: tls, port: 80}, " + fields + "}")
}

func ofBackend(filter string) string {
	return "HTTPRoute rules: [{backendRefs: [{name: web, port: 80, filters: [{" + filter + "}]}]}]"
}

var durations = slices.Concat(
	words(served, "0s 1ms 10s 1h30m 99999h 99999h99999h99999h99999h 0h0m0s0ms 99999s99999ms 1s1s 00000s"),
	words(api, "1 -1s 1.5s 1us 1ns 1d 1h1m1s1ms1s 100000h +1s s 1S"), each(api, "", " 1s", "1s\n"),
)
