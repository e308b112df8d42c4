package host

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/stead-project/stead/agent/move/peer"
	"github.com/stead-project/stead/spec/scalar"
)

// DefaultMoveRate is how much all moves of a host together copy in a second.
const DefaultMoveRate = "100Mi"

// moveRate is that in bytes; 0: any number.
func (o *Options) moveRate() (int64, error) {
	q, err := scalar.ParseQuantity(cmp.Or(o.MoveRate, DefaultMoveRate))
	if err != nil || q.Value() < 0 {
		return 0, OptionError{fmt.Errorf("invalid --move-rate %q: write bytes a second, such as 50Mi, or 0 (any number)", o.MoveRate)}
	}
	return q.Value(), nil
}

// copier copies the volumes of members that move. It listens at the address by which other hosts reach this one, from the first
// move on.
func (o *Options) copier(log *slog.Logger) (*peer.Exchange, error) {
	rate, err := o.moveRate()
	if err != nil {
		return nil, err
	}
	address, _, err := o.address()
	if err != nil {
		return nil, err
	}
	at := net.JoinHostPort(cmp.Or(address, "127.0.0.1"), strconv.Itoa(o.MovePort))
	return peer.New(peer.Config{Listen: at, BytesPerSecond: rate, Now: time.Now, Logger: log}), nil
}
