package audit

import (
	"crypto/rand"
	"time"
)

// Caller is who makes a call, as a Line names it.
type Caller struct{ Who, User, From string }

// Call is one that is under way.
type Call struct {
	log   *Trail
	entry Line
	began time.Time
	req   any
}

// Begin is for a call of which an entry is kept when it is over. nil: none is kept. All methods may be called on nil.
func (l *Trail) Begin(c Caller, method string) *Call {
	verb, kept := Verb(method)
	if l == nil || !kept {
		return nil
	}
	return &Call{log: l, entry: Line{Who: c.Who, User: c.User, From: c.From, Verb: verb}, began: time.Now()}
}

// Asked is the request; with lasts, the first of a call that lasts, which is kept at once.
func (c *Call) Asked(request any, lasts bool) {
	if c == nil || c.req != nil {
		return
	}
	c.req = request
	if !lasts {
		return
	}
	if a := look(request, nil); !a.skip {
		c.entry.Objects, c.entry.Detail = a.objects, a.detail
		c.entry.Call, c.entry.Began = rand.Text()[:10], true
		c.log.Write(c.entry)
		c.entry.Began = false
	}
}

// Done is its end, with the answer, if it has one, and what gRPC says of it.
func (c *Call) Done(answer any, code, err string) {
	if c == nil {
		return
	}
	a := look(c.req, answer)
	if a.skip && !refused(code) {
		return
	}
	c.entry.Objects, c.entry.Detail = a.objects, a.detail
	c.entry.Code, c.entry.Error, c.entry.Seconds = code, err, time.Since(c.began).Round(time.Millisecond).Seconds()
	c.log.Write(c.entry)
}

// Refused is a call that was refused before it was looked at, of any method.
func (l *Trail) Refused(c Caller, method, code, err string) {
	if l == nil {
		return
	}
	verb, kept := Verb(method)
	if !kept {
		verb = method
	}
	l.Write(Line{Who: c.Who, User: c.User, From: c.From, Verb: verb, Code: code, Error: err})
}

func refused(code string) bool { return code == "PermissionDenied" || code == "Unauthenticated" }
