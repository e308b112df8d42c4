package volume

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stead-project/stead/internal/durable"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

const ownerFile = "owner.json"

// ownerDraft is what a crash may leave of one that was being written.
var ownerDraft = durable.Draft(ownerFile)

// owner is the content of an owner file: which volume this is (SAFETY S11).
type owner struct {
	Cluster   string           `json:"cluster"`
	Namespace spec.Namespace   `json:"namespace"`
	Set       spec.SetName     `json:"set"`
	Ordinal   int              `json:"ordinal"`
	Claim     spec.ClaimName   `json:"claim"`
	Volume    records.VolumeID `json:"volume"`
	Number    int              `json:"number"`
}

// String is for messages to people.
func (o owner) String() string {
	id := spec.Identity{Namespace: o.Namespace, Set: o.Set, Ordinal: o.Ordinal}
	return fmt.Sprintf("volume %s (claim %s of %s, number %d, cluster %s)", o.Volume, o.Claim, id, o.Number, o.Cluster)
}

func readOwner(root *os.Root, place string) (owner, error) {
	var o owner
	content, err := root.ReadFile(filepath.Join(place, ownerFile))
	if err != nil {
		return o, err
	}
	err = json.Unmarshal(content, &o)
	return o, err
}

// writeOwner writes the owner file whole and durably, or not at all.
func (d *disks) writeOwner(root *os.Root, place string, o owner) error {
	content, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return d.writer.Put(root, filepath.Join(place, ownerFile), append(content, '\n'), 0o600)
}
