package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sparkPatience is for one job, also while no worker is there; the numbers summed up are below sparkNumbers (testdata/spark/Sums.java).
const (
	sparkPatience = 3 * time.Minute
	sparkNumbers  = 10000
)

// spark has one application compute sums, of which the right ones are known. A write is a job whose sum was answered;
// it is read back by computing it again from what the job left on the disks of the workers.
type spark struct {
	at     string
	client http.Client
	wrong  *sync.Map // sums that were not right, by key
}

// newSpark makes writers and readers that ask the application there.
func newSpark(names []string, dns string) func(first int) keys {
	wrong := &sync.Map{}
	return func(int) keys {
		return &spark{at: names[0], wrong: wrong, client: http.Client{Transport: &http.Transport{DialContext: dialerBy(dns).DialContext, MaxIdleConnsPerHost: 1}}}
	}
}

// next does nothing: there is one application.
func (s *spark) next() {}

// put takes any answer for an acknowledgement: one that is wrong is found when it is read back.
func (s *spark) put(ctx context.Context, key, _ string) error {
	by, right := sparkJob(key)
	sum, err := s.ask(ctx, http.MethodPost, key+"?by="+strconv.Itoa(by))
	if err == nil && sum != right {
		s.wrong.Store(key, sum)
	}
	return err
}

func (s *spark) get(ctx context.Context, key string) (string, error) {
	if sum, wrong := s.wrong.Load(key); wrong {
		return fmt.Sprint("the wrong sum ", sum), nil
	}
	sum, err := s.ask(ctx, http.MethodGet, key)
	if _, right := sparkJob(key); err == nil && sum == right {
		return key, nil
	}
	return sum, err
}

// sparkJob is what a key's numbers are multiplied with, and their sum.
func sparkJob(key string) (by int, sum string) {
	h := fnv.New32a()
	_, _ = io.WriteString(h, key)
	by = int(h.Sum32()%1000) + 1
	return by, strconv.Itoa(by * sparkNumbers * (sparkNumbers - 1) / 2)
}

// ask returns what the application answers; nothing if it does not know the job.
func (s *spark) ask(ctx context.Context, method, words string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, sparkPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.at+"/"+words, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusNotFound:
		return "", nil
	case resp.StatusCode != http.StatusOK:
		return "", errors.New(resp.Status + ": " + strings.TrimSpace(string(text)))
	}
	return string(text), nil
}
