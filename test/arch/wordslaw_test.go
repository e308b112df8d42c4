package arch

// phrase is what must not come back in messages, and what to say.
type phrase struct{ words, instead string }

// notInMessages are phrases of the early years: metaphors, and English that is not quite
// English. They are looked for in the string literals of code that is no test.
var notInMessages = []phrase{
	{" is no ", "say what is wrong and what is right: 'invalid X: must be Y'"},
	{" are no ", "say what is wrong and what is right"},
	{" nobody ", "say who does not"},
	{" for ever ", "permanently"},
	{" goes on ", "continues"},
	{" go on ", "continue"},
	{" anew ", "again"},
	{" stands ", "is"},
	{" begun ", "started"},
}

// wordsLeft are the folders in which they still are; a new folder is not added.
var wordsLeft = map[string]bool{}
