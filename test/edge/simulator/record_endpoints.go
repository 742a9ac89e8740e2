package simulator

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

// recordEndpoints returns the endpoints that read and change DNS records.
func (s *Server) recordEndpoints() map[string]endpoint {
	const (
		records = basePath + "/zones/{zone}/dns_records"
		record  = records + "/{record}"
	)
	read := func(call func(*http.Request, zones.Zone) response) endpoint {
		return s.zoneEndpoint(authenticationError, call, DNSRead, DNSEdit)
	}
	edit := func(call func(*http.Request, zones.Zone) response) endpoint {
		return s.zoneEndpoint(authenticationError, call, DNSEdit)
	}
	return map[string]endpoint{
		"GET " + records:             read(s.listRecords),
		"GET " + records + "/usage":  read(s.getUsage),
		"GET " + record:              read(s.getRecord),
		"POST " + records:            edit(s.createRecord),
		"POST " + records + "/batch": edit(s.applyBatch),
		"PUT " + record:              edit(s.putRecord),
		"PATCH " + record:            edit(s.patchRecord),
		"DELETE " + record:           edit(s.deleteRecord),
	}
}

// getUsage returns the number of records in the zone and its quota.
func (s *Server) getUsage(_ *http.Request, z zones.Zone) response {
	return success(map[string]int{"record_quota": z.Quota(), "record_usage": len(s.options.Zones.Records(z.ID))})
}

func (s *Server) getRecord(r *http.Request, z zones.Zone) response {
	for _, record := range s.options.Zones.Records(z.ID) {
		if record.ID == r.PathValue("record") {
			return success(record)
		}
	}
	return failure(http.StatusNotFound, zones.CodeNoRecord, "Record does not exist.")
}

func (s *Server) createRecord(r *http.Request, z zones.Zone) response {
	return withBody(r, func(f zones.Fields) (zones.Record, error) { return s.options.Zones.Create(z.ID, f) })
}

func (s *Server) putRecord(r *http.Request, z zones.Zone) response {
	return withBody(r, func(f zones.Fields) (zones.Record, error) {
		return s.options.Zones.Put(z.ID, r.PathValue("record"), f)
	})
}

func (s *Server) patchRecord(r *http.Request, z zones.Zone) response {
	return withBody(r, func(f zones.Fields) (zones.Record, error) {
		return s.options.Zones.Patch(z.ID, r.PathValue("record"), f)
	})
}

func (s *Server) deleteRecord(r *http.Request, z zones.Zone) response {
	id := r.PathValue("record")
	return result(map[string]string{"id": id}, s.options.Zones.Delete(z.ID, id))
}

// applyBatch applies a batch. If it fails, the response contains only the first error.
func (s *Server) applyBatch(r *http.Request, z zones.Zone) response {
	return withBody(r, func(b zones.Batch) (zones.Result, error) { return s.options.Zones.Apply(z.ID, b) })
}

// withBody decodes the request's body and responds with the result of call.
func withBody[Body, Result any](r *http.Request, call func(Body) (Result, error)) response {
	var body Body
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return failure(http.StatusBadRequest, codeBadRequest, "Could not parse the body: "+err.Error())
	}
	return result(call(body))
}

// result returns a response with the value, or with the error of package zones.
func result[T any](value T, err error) response {
	var invalid *zones.Error
	if errors.As(err, &invalid) {
		return failure(invalid.Status, invalid.Code, invalid.Message)
	}
	return success(value)
}
