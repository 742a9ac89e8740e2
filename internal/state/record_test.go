package state_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

func annotated(record string) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{}
	g.Annotations = map[string]string{state.RecordAnnotation: record}
	return g
}

func TestRecordRoundTrip(t *testing.T) {
	for name, want := range map[string]state.Record{
		"before there is a tunnel": {Controller: controllerName, Account: "account"},
		"a tunnel with a document": {
			Controller: controllerName, Account: "account", Tunnel: "tunnel", Origin: state.OriginAdopted,
			Hash: "new", Previous: "old", TakenOver: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := state.ReadRecord(annotated(want.String()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the record differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The annotation outlives the program that wrote it.
func TestRecordFormat(t *testing.T) {
	record := state.Record{
		Controller: controllerName, Account: "account", Tunnel: "tunnel", Origin: state.OriginCreated, Hash: "h", Previous: "p", TakenOver: true,
	}
	const want = `{"controller":"tunnelgateway.dev/controller","account":"account","tunnel":"tunnel",` +
		`"origin":"created","hash":"h","previous":"p","takenOver":true}`
	if diff := cmp.Diff(want, record.String()); diff != "" {
		t.Errorf("the annotation differs (-want +got):\n%s", diff)
	}
}

func TestReadRecord(t *testing.T) {
	for name, test := range map[string]struct {
		object *gatewayv1.Gateway
		wrong  bool
	}{
		"no annotations":        {object: &gatewayv1.Gateway{}},
		"an empty annotation":   {object: annotated("")},
		"a field of the future": {object: annotated(`{"future":1}`)},
		"not JSON":              {object: annotated("tunnel"), wrong: true},
		"a field of another type": {
			object: annotated(`{"controller":"c","tunnel":5}`), wrong: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := state.ReadRecord(test.object)
			if got != (state.Record{}) {
				t.Errorf("ReadRecord = %+v, want none", got)
			}
			if wrong := err != nil; wrong != test.wrong {
				t.Fatalf("ReadRecord gave the error %v", err)
			}
			if test.wrong && !strings.Contains(err.Error(), state.RecordAnnotation) {
				t.Errorf("error %q does not name the annotation", err)
			}
		})
	}
}

func TestRecordKnowsBothDocumentsOfAWrite(t *testing.T) {
	r := state.Record{Hash: "one"}.Writing("two", "one")
	for hash, want := range map[string]bool{"one": true, "two": true, "three": false, "": false} {
		if got := r.Knows(hash); got != want {
			t.Errorf("Knows(%q) = %t, want %t", hash, got, want)
		}
	}
	if first := (state.Record{}).Writing("one", ""); first.Knows("") {
		t.Error("a record without a previous document knows the empty hash")
	}
}

func TestRecordMayReplace(t *testing.T) {
	for name, test := range map[string]struct {
		record state.Record
		want   bool
	}{
		"created":               {state.Record{Origin: state.OriginCreated}, true},
		"adopted":               {state.Record{Origin: state.OriginAdopted}, false},
		"adopted and permitted": {state.Record{Origin: state.OriginAdopted, TakenOver: true}, true},
		"unknown":               {state.Record{}, false},
	} {
		if got := test.record.MayReplace(); got != test.want {
			t.Errorf("%s: MayReplace = %t, want %t", name, got, test.want)
		}
	}
}
