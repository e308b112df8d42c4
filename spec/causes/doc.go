// Package causes is the one list of words for what is wrong with a life, a container or a
// volume (Cause), and for what a member waits for (BlockedReason). It imports nothing.
package causes
