// Package trace sends spans of how members start to a collector, by OpenTelemetry's protocol (OTLP over gRPC). Spans of one
// start come from several programs: what belongs together travels in the records, as a Context. A nil Tracer is off: it makes no
// Context, and tells nothing.
package trace

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stead-project/stead/internal/trouble"
)

// Context names a span, as in the header traceparent of W3C Trace Context; "": none.
type Context = string

// Config is what a Tracer needs; all of it.
type Config struct {
	// Endpoint is the collector's: http://HOST:PORT, or https:// by the host's authorities.
	Endpoint string
	// Service is the program: stead-server or stead-agent; Instance which of them; Version its own.
	Service, Instance, Version string
	Logger                     *slog.Logger
}

// CheckEndpoint says what is wrong with an endpoint; nil: nothing.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Hostname() == "" || u.Path != "" && u.Path != "/" {
		return fmt.Errorf("invalid endpoint %q: must be http://HOST:PORT of a collector (mostly port 4317), or https:// with TLS", endpoint)
	}
	return nil
}

// Tracer tells of spans. Nothing of it waits for the collector: spans that it does not take in time are dropped.
type Tracer struct {
	ctx      context.Context // of Open, without its end
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

const (
	sendTime  = 5 * time.Second // bounds one message
	sendAfter = time.Second     // spans are sent together
	closeTime = time.Second     // for the last ones
)

// Open returns a Tracer, or nil if c has no endpoint. It does not wait for the collector.
func Open(ctx context.Context, c Config) (*Tracer, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	if err := CheckEndpoint(c.Endpoint); err != nil {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(c.Endpoint), otlptracegrpc.WithTimeout(sendTime),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}))
	if err != nil {
		return nil, fmt.Errorf("open traces: %w", err)
	}
	var mu sync.Mutex
	var last trouble.Last
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if last.IsErr(err) {
			c.Logger.Warn("traces not sent", "err", err)
		}
	}))
	p := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(sendAfter), sdk.WithExportTimeout(sendTime)), sdk.WithIDGenerator(chosen{}),
		sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", c.Service), attribute.String("service.instance.id", c.Instance), attribute.String("service.version", c.Version))),
	)
	return &Tracer{context.WithoutCancel(ctx), p, p.Tracer("stead")}, nil
}

// Close sends what is left, if the collector takes it within a second.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, closeTime)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // the error handler has logged it
}

// New names a span that is told later, possibly by another program: one of parent's trace, or of a new one.
func (t *Tracer) New(parent Context) Context {
	if t == nil {
		return ""
	}
	id, span := newIDs()
	if p := parse(parent); p.IsValid() {
		id = p.TraceID()
	}
	return format(trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled}))
}

// Within returns parent if c belongs to its trace, and "" if it has one of its own.
func Within(c, parent Context) Context {
	child, of := parse(c), parse(parent)
	if !child.IsValid() || child.TraceID() != of.TraceID() {
		return ""
	}
	return parent
}

// Span is something that took its time.
type Span struct {
	Name         string
	Self         Context // of New; "": nobody else names it
	Parent       Context // "": Self begins its trace
	Began, Ended time.Time
	Err          error
	// About are names and values, in turn.
	About []string
}

// Tell sends a span. One without Self and Parent belongs to nothing: it is not sent.
func (t *Tracer) Tell(s Span) {
	if t == nil || s.Self == "" && s.Parent == "" {
		return
	}
	ctx := t.ctx
	if s.Self != "" {
		ctx = context.WithValue(ctx, selfKey{}, parse(s.Self))
	}
	if p := parse(s.Parent); p.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, p)
	}
	about := make([]attribute.KeyValue, 0, len(s.About)/2)
	for i := 0; i+1 < len(s.About); i += 2 {
		if s.About[i+1] != "" {
			about = append(about, attribute.String(s.About[i], s.About[i+1]))
		}
	}
	_, span := t.tracer.Start(ctx, s.Name, trace.WithTimestamp(s.Began), trace.WithAttributes(about...))
	if s.Err != nil {
		span.SetStatus(codes.Error, s.Err.Error())
	}
	span.End(trace.WithTimestamp(s.Ended))
}

// selfKey is the key of a span's own Context.
type selfKey struct{}

// chosen gives a span the ids that it was named by.
type chosen struct{}

func (chosen) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if self, ok := ctx.Value(selfKey{}).(trace.SpanContext); ok && self.IsValid() {
		return self.TraceID(), self.SpanID()
	}
	return newIDs()
}

func (c chosen) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := c.NewIDs(ctx)
	return id
}

func newIDs() (id trace.TraceID, span trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails: see crypto/rand
	_, _ = rand.Read(span[:])
	return id, span
}

func format(s trace.SpanContext) Context {
	return "00-" + s.TraceID().String() + "-" + s.SpanID().String() + "-" + s.TraceFlags().String()
}

// parse returns an invalid one for what is no Context.
func parse(c Context) trace.SpanContext {
	parts := strings.Split(c, "-")
	if len(parts) != 4 {
		return trace.SpanContext{}
	}
	id, err := trace.TraceIDFromHex(parts[1])
	span, err2 := trace.SpanIDFromHex(parts[2])
	if err != nil || err2 != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
}
