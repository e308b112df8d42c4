package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

// tokenVariable holds a join token; unlike a flag, other users of the host cannot see it.
const tokenVariable = "STEAD_TOKEN"

// tokenBytes limits a join token that is read; a real one has about 120 bytes.
const tokenBytes = 4096

// tokenOptions say where a join token is.
type tokenOptions struct {
	token string // itself, or "-": on standard input
	file  string
}

func (o *tokenOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "token-file", "", "file with the join token for the first start, created by 'stead token create'")
	f.StringVar(&o.token, "token", "", "the join token itself, visible to every user of this host in the process list; '-': read it from standard input (default: $"+tokenVariable+")")
}

// read returns the join token; "": none was given. It unsets the variable, so that no
// process that is started later inherits it.
func (o *tokenOptions) read(in io.Reader) (string, error) {
	variable := os.Getenv(tokenVariable)
	if err := os.Unsetenv(tokenVariable); err != nil {
		return "", err
	}
	switch {
	case o.token != "" && o.file != "":
		return "", usageError{errors.New("use either --token or --token-file, not both")}
	case o.token == "-":
		return tokenFrom(in, "standard input")
	case o.token != "":
		return o.token, nil
	case o.file == "":
		return variable, nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w; remove the flag if the node has already joined", err)
	}
	defer f.Close()
	return tokenFrom(f, o.file)
}

func tokenFrom(r io.Reader, name string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, tokenBytes))
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return "", fmt.Errorf("read join token: %s is empty", name)
	}
	return string(text), nil
}
