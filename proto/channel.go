package proto

// The channels of the frames of a tunnel (types.proto).
const (
	ChannelIn      = 0
	ChannelOut     = 1
	ChannelErr     = 2
	ChannelControl = 3
)
