package proto

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// ExactBuffers has a server marshal each message into a buffer of its size. gRPC's own codec takes
// one of 1 MiB for every message above 32 KiB and keeps it for reuse (google.golang.org/grpc/mem,
// the tiers of its pool), for each session that is sent one at the same time: with 100
// nodes that was nine tenths of the server's memory.
func ExactBuffers() grpc.ServerOption { return grpc.ForceServerCodecV2(exactCodec{}) }

type exactCodec struct{}

var _ encoding.CodecV2 = exactCodec{}

// Name implements encoding.CodecV2: on the wire it is gRPC's own.
func (exactCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (exactCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("marshal %T: it is not a protobuf message", v)
	}
	b, err := proto.Marshal(m)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

// Unmarshal implements encoding.CodecV2.
func (exactCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("unmarshal %T: it is not a protobuf message", v)
	}
	return proto.Unmarshal(data.Materialize(), m)
}
