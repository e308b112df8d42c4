package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

// tokenVariable holds a join token, which is then seen by no other user of the host.
const tokenVariable = "STEAD_TOKEN"

// tokenBytes bounds a join token as it is read; one has about 120.
const tokenBytes = 4096

// tokenOptions say where a join token is.
type tokenOptions struct {
	token string // itself, or "-": on standard input
	file  string
}

func (o *tokenOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "token-file", "", "file with the join token, for the first start; made by 'stead token create'")
	f.StringVar(&o.token, "token", "", "the join token itself, which every user of this host sees in the list of processes; '-': read it from standard input (default: $"+tokenVariable+")")
}

// read is the join token; "": there is none. The variable is gone afterwards, so that no
// process that is started has it.
func (o *tokenOptions) read(in io.Reader) (string, error) {
	variable := os.Getenv(tokenVariable)
	if err := os.Unsetenv(tokenVariable); err != nil {
		return "", err
	}
	switch {
	case o.token != "" && o.file != "":
		return "", usageError{errors.New("give --token or --token-file, not both")}
	case o.token == "-":
		return tokenFrom(in, "standard input")
	case o.token != "":
		return o.token, nil
	case o.file == "":
		return variable, nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w; remove the option when the node has joined", err)
	}
	defer f.Close()
	return tokenFrom(f, o.file)
}

func tokenFrom(r io.Reader, name string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, tokenBytes))
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "", fmt.Errorf("read join token: %s is empty", name)
	}
	return string(text), nil
}
