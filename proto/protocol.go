package proto

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The protocols that this program speaks, from the oldest to the newest. The number rises when a side could no longer do
// without what the other is not known to have; what is only added needs no other number. A release speaks those of the
// release before.
const oldestProtocol, newestProtocol = 1, 1

// ProtocolKey is the key of the gRPC metadata in which both sides of every call say which protocols they speak: OLDEST-NEWEST.
// v0.1.0 says nothing, and speaks 1.
const ProtocolKey = "stead-protocol"

// protocols are those from oldest to newest.
type protocols struct{ oldest, newest int }

func (p protocols) String() string {
	if p.oldest == p.newest {
		return fmt.Sprintf("protocol %d", p.newest)
	}
	return fmt.Sprintf("protocols %d to %d", p.oldest, p.newest)
}

var own = protocols{oldestProtocol, newestProtocol}

// readProtocols reads what the other side said.
func readProtocols(said []string) (p protocols, err error) {
	if len(said) == 0 {
		return protocols{1, 1}, nil
	}
	from, to, _ := strings.Cut(said[0], "-")
	p.oldest, err = strconv.Atoi(from)
	if err == nil {
		p.newest, err = strconv.Atoi(to)
	}
	if err != nil || len(said) > 1 || p.oldest < 1 || p.newest < p.oldest {
		return p, fmt.Errorf("%s is %q, and not OLDEST-NEWEST", ProtocolKey, said)
	}
	return p, nil
}

// refusal says why the sides cannot talk, and which is to be upgraded; "": they can.
func refusal(mine protocols, me string, said []string, other string) string {
	theirs, err := readProtocols(said)
	switch {
	case err != nil:
		return fmt.Sprintf("the %s's protocol is not known: %v", other, err)
	case theirs.oldest > mine.newest:
		return fmt.Sprintf("the %[1]s speaks %[2]s, and the %[3]s only %[4]s: upgrade the %[3]s", other, theirs, me, mine)
	case theirs.newest < mine.oldest:
		return fmt.Sprintf("the %[1]s speaks %[2]s only, and the %[3]s %[4]s: upgrade the %[1]s", other, theirs, me, mine)
	}
	return ""
}

func (p protocols) metadata() metadata.MD {
	return metadata.Pairs(ProtocolKey, fmt.Sprintf("%d-%d", p.oldest, p.newest))
}

// CheckCaller tells the caller which protocols the server speaks, and refuses one that speaks none of them
// with FAILED_PRECONDITION. It is called at the begin of every call.
func CheckCaller(ctx context.Context, tell func(metadata.MD) error) error {
	if err := tell(own.metadata()); err != nil {
		return err
	}
	if why := refusal(own, "server", metadata.ValueFromIncomingContext(ctx, ProtocolKey), "caller"); why != "" {
		return status.Error(codes.FailedPrecondition, why)
	}
	return nil
}

// checksServer are options of a connection to a server: each call says which protocols this side speaks, and fails with
// FAILED_PRECONDITION when the server speaks none of them.
func checksServer() []grpc.DialOption {
	say := func(ctx context.Context) context.Context {
		return metadata.AppendToOutgoingContext(ctx, ProtocolKey, own.metadata().Get(ProtocolKey)[0])
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
			var header metadata.MD
			if err := call(say(ctx), method, in, out, conn, append(options, grpc.Header(&header))...); err != nil {
				return err
			}
			return checkServer(header)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(say(ctx), desc, conn, method, options...)
			if err != nil {
				return nil, err
			}
			return &checkedStream{ClientStream: stream}, nil
		}),
	}
}

func checkServer(header metadata.MD) error {
	if why := refusal(own, "program that calls it", header.Get(ProtocolKey), "server"); why != "" {
		return status.Error(codes.FailedPrecondition, why)
	}
	return nil
}

// checkedStream checks the server with the first message that it sends.
type checkedStream struct {
	grpc.ClientStream
	checked bool // only RecvMsg, which has one caller at a time
}

func (s *checkedStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil || s.checked {
		return err
	}
	header, err := s.Header()
	if err == nil {
		err = checkServer(header)
	}
	s.checked = err == nil
	return err
}
