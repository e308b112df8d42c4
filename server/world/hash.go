package world

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/store"
)

// hashTemplate stands in until spec.HashTemplate has landed.
func hashTemplate(t spec.Template) spec.RevisionHash {
	sum := sha256.Sum256(store.Encode(t))
	return spec.RevisionHash(hex.EncodeToString(sum[:5]))
}
