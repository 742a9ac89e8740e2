package ingress

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Each field of originRequest that is set appears in the tunnel configuration under
// the same name, without any other field.
func TestRenderOriginRequestRendersEveryField(t *testing.T) {
	fields := reflect.TypeFor[v1alpha1.OriginRequest]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		t.Run(name, func(t *testing.T) {
			var o v1alpha1.OriginRequest
			field := reflect.ValueOf(&o).Elem().Field(i)
			field.Set(reflect.New(field.Type().Elem()))
			switch value := field.Elem(); value.Kind() {
			case reflect.String:
				value.SetString("1s")
			case reflect.Bool:
				value.SetBool(true)
			default:
				value.SetInt(1)
			}
			encoded, err := json.Marshal(renderOriginRequest(o))
			if err != nil {
				t.Fatal(err)
			}
			var rendered map[string]any
			if err := json.Unmarshal(encoded, &rendered); err != nil {
				t.Fatal(err)
			}
			if _, ok := rendered[name]; !ok || len(rendered) != 1 {
				t.Errorf("got %s, want only the field %s", encoded, name)
			}
		})
	}
}
