// Package trouble keeps what lasts from being logged each time that it is met again.
package trouble

// Last is the trouble that was logged last. The zero value is none. It is for one goroutine.
type Last struct{ text string }

// Is notes what the trouble is now ("": none) and reports whether it is to be logged: it is
// some, and was not the last.
func (l *Last) Is(text string) (news bool) {
	news = text != "" && text != l.text
	l.text = text
	return news
}

// IsErr is Is of an error's text; nil is none.
func (l *Last) IsErr(err error) (news bool) {
	if err == nil {
		return l.Is("")
	}
	return l.Is(err.Error())
}
