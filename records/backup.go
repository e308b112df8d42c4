package records

import "time"

// BackupState is how it stands with the scheduled backups of one server, for people.
type BackupState struct {
	Server    string        `json:"server"`
	Dir       string        `json:"dir"`
	Every     time.Duration `json:"every"` // nanoseconds
	Encrypted bool          `json:"encrypted,omitempty"`
	// LastGood is when the newest good one was made, zero: there is none; Name and Bytes are its file's.
	LastGood time.Time `json:"lastGood,omitzero"`
	Name     string    `json:"name,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	// Kept is how many files there are, and Damaged of how many something is wrong.
	Kept    int `json:"kept"`
	Damaged int `json:"damaged,omitempty"`
	// Trouble is why the last attempt made none; "": it did, or it was not time.
	Trouble string `json:"trouble,omitempty"`
}
