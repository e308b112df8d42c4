package access

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stead-project/stead/proto"
)

// fits refuses a call of who shares no protocol with this server, before anybody looks at it.
func fits(ctx context.Context, req any, _ *grpc.UnaryServerInfo, call grpc.UnaryHandler) (any, error) {
	err := proto.CheckCaller(ctx, func(said metadata.MD) error { return grpc.SetHeader(ctx, said) })
	if err != nil {
		return nil, err
	}
	return call(ctx, req)
}

// streamFits is fits of streams.
func streamFits(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, call grpc.StreamHandler) error {
	if err := proto.CheckCaller(stream.Context(), stream.SetHeader); err != nil {
		return err
	}
	return call(srv, stream)
}
