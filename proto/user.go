package proto

// UserKey is the key of the gRPC metadata in which a client says for whom it calls. It
// is shown to people and decides nothing: whoever may open the socket may do all. Over the
// network the name in the client's certificate takes its place.
const UserKey = "stead-user"
