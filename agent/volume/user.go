package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/internal/wrap"
	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// usersDir is below the agent's root and holds a record for each identity whose lives had the volume of
// a PersistentVolumeClaim: the spec.LifeID of the last.
const usersDir = "users"

// userName is the name of a record; all users of a volume are of one namespace.
func userName(volume records.VolumeID, id spec.Identity) string {
	return string(volume) + "." + id.MemberName()
}

// NoteUser implements runtime.Volumes.
func (v *Volumes) NoteUser(_ context.Context, volume records.VolumeID, life spec.LifeID) (err error) {
	defer wrap.Error(&err, "note that %s has volume %s", life.ID, volume)
	if err := errors.Join(checkIdentity(life.ID), checkLabel(string(volume))); err != nil {
		return err
	}
	var noted spec.LifeID
	if _, err := v.records.read(usersDir, userName(volume, life.ID), &noted); err == nil && noted == life {
		return nil
	}
	return v.records.write(usersDir, userName(volume, life.ID), life)
}

// Users implements runtime.Volumes.
func (v *Volumes) Users(_ context.Context, volume records.VolumeID) (lives []spec.LifeID, err error) {
	defer wrap.Error(&err, "list who has volume %s", volume)
	names, err := v.userNames(volume)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var life spec.LifeID
		switch there, err := v.records.read(usersDir, name, &life); {
		case err != nil:
			return nil, fmt.Errorf("the record %s cannot be read: %w", name, err)
		case there:
			lives = append(lives, life)
		}
	}
	slices.SortFunc(lives, func(a, b spec.LifeID) int { return cmp.Or(a.ID.Compare(b.ID), a.Token.Compare(b.Token)) })
	return lives, nil
}

// userNames are the records of a volume.
func (v *Volumes) userNames(volume records.VolumeID) ([]string, error) {
	names, err := v.records.names(usersDir)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, string(volume)+".") }), err
}

// forgetUsers removes the records of a volume that is erased.
func (v *Volumes) forgetUsers(volume records.VolumeID) error {
	names, err := v.userNames(volume)
	for _, name := range names {
		err = errors.Join(err, v.records.remove(usersDir, name))
	}
	return err
}
