package runtime

import "time"

// StoredImage is an image as the runtime keeps it, under one name.
type StoredImage struct {
	Name   string // in full
	Digest string
	// Pulled: it came from a registry, where it can be had again. What was loaded from an archive, or
	// by an agent of an earlier version, is not known to be there.
	Pulled bool
	// Since is when the name was given to it last.
	Since time.Time
}

// ImageDisk is a disk with images.
type ImageDisk struct {
	Dir                   string
	TotalBytes, FreeBytes int64
	// ReserveBytes: with less free, nothing is pulled, loaded or unpacked.
	ReserveBytes int64
}
