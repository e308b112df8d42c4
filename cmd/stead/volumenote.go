package main

import (
	"time"

	"github.com/stead-project/stead/records"
)

// volumeNote says what happens to a volume that is given up, or why it cannot be.
func volumeNote(st records.ShownVolume) string {
	switch said := st.Said; {
	case said != nil && said.State == records.VolumeTrashed:
		left := max(0, said.Left.Duration-time.Since(said.At)).Round(time.Second)
		note := "will be erased in about " + left.String()
		if said.Unproven {
			note += "; reported only by node " + string(said.Node)
		}
		return note
	case said != nil && said.Cause != "":
		return string(said.Cause) + ": " + said.Message
	case st.Asked != "":
		return "requested by a user: " + string(st.Asked)
	case said != nil:
		return string(said.State)
	}
	return ""
}
