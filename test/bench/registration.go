package main

import (
	"context"
	"io"

	"github.com/google/uuid"
	capnp "zombiezen.com/go/capnproto2"
	"zombiezen.com/go/capnproto2/rpc"
	"zombiezen.com/go/capnproto2/server"
)

// The interface with which cloudflared registers, and its methods. The source is
// tunnelrpc/proto/tunnelrpc.capnp in cloudflared.
const (
	registrationInterface = 0xf71695ec7fe85497
	registerMethod        = 0
	unregisterMethod      = 1
)

// serveRegistration serves cloudflared's control stream until it ends. It accepts every
// registration, calls registered after the first, and responds that the tunnel is
// remotely managed.
func serveRegistration(stream io.ReadWriteCloser, registered func()) {
	methods := []server.Method{
		{
			Method:      capnp.Method{InterfaceID: registrationInterface, MethodID: registerMethod},
			ResultsSize: capnp.ObjectSize{PointerCount: 1},
			Impl: func(_ context.Context, _ capnp.CallOptions, _, results capnp.Struct) error {
				defer registered()
				return acceptRegistration(results)
			},
		},
		{
			Method: capnp.Method{InterfaceID: registrationInterface, MethodID: unregisterMethod},
			Impl:   func(context.Context, capnp.CallOptions, capnp.Struct, capnp.Struct) error { return nil },
		},
	}
	connection := rpc.NewConn(rpc.StreamTransport(stream), rpc.MainInterface(server.New(methods, nil)), rpc.ConnLog(nil))
	_ = connection.Wait() // it ends with the connector
}

// acceptRegistration writes a ConnectionResponse with ConnectionDetails.
func acceptRegistration(results capnp.Struct) error {
	response, err := capnp.NewStruct(results.Segment(), capnp.ObjectSize{DataSize: 8, PointerCount: 1})
	if err != nil {
		return err
	}
	details, err := capnp.NewStruct(results.Segment(), capnp.ObjectSize{DataSize: 8, PointerCount: 2})
	if err != nil {
		return err
	}
	id := uuid.New()
	if err := details.SetData(0, id[:]); err != nil { // uuid
		return err
	}
	if err := details.SetText(1, "bench"); err != nil { // locationName
		return err
	}
	details.SetBit(0, true)  // tunnelIsRemotelyManaged
	response.SetUint16(0, 1) // the union contains connectionDetails
	if err := response.SetPtr(0, details.ToPtr()); err != nil {
		return err
	}
	return results.SetPtr(0, response.ToPtr())
}
