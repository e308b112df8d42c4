package main

import (
	"time"

	"github.com/stead-project/stead/spec"
)

// volumeNote says what becomes of a volume that is given up, or why it does not go.
func volumeNote(said *spec.VolumeReport) string {
	switch {
	case said == nil:
		return ""
	case said.State == spec.VolumeTrashed:
		left := max(0, said.Left.Duration-time.Since(said.At)).Round(time.Second)
		return "erased in about " + left.String()
	case said.Cause != "":
		return said.Cause + ": " + said.Message
	}
	return string(said.State)
}
