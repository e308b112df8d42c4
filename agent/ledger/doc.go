// Package ledger is a node's memory of which tokens were opened and closed here
// (SAFETY S1, S4): an append-only file, one record a line, each with a checksum
// and on disk (fsync) before the call returns.
//
//	<crc32, 8 hex digits> <JSON of record>\n
//
// A token is opened before its first start and closed before its end is reported;
// a closed token, or one older than the identity's newest, can never be opened
// again. The newest token of an identity stays for ever; the end of a token is
// kept until the server has stored it, then it may be compacted away.
//
// A record that a crash cut off at the very end was never acknowledged and is
// dropped. Any other damage is refused: a ledger that forgot something must not
// decide about starts.
package ledger
