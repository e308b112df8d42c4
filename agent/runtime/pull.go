package runtime

import "github.com/stead-project/stead/agent/registry"

// Pull says which image is to be present, and how it is had if it is not.
type Pull struct {
	// Image is its name as the template writes it.
	Image string
	// Policy is spec.PullAlways, spec.PullIfNotPresent or spec.PullNever.
	Policy string
	// Credentials is called when it is pulled: each of them is tried in turn, at the registry and at
	// its mirrors; none: it is pulled without. Its error is that of the pull. nil: there are none.
	Credentials func() ([]registry.Login, error)
	// Progress is written meanwhile; nil: nobody looks.
	Progress *PullProgress
}

// Tried are the credentials to try in turn; an empty one, if there are none.
func (p Pull) Tried() ([]registry.Login, error) {
	var found []registry.Login
	if p.Credentials != nil {
		var err error
		found, err = p.Credentials()
		if err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		found = []registry.Login{{}}
	}
	return found, nil
}
