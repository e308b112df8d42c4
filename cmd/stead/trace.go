package main

import (
	"context"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/stead-project/stead/internal/trace"
)

func traceFlag(f *pflag.FlagSet, endpoint *string) {
	f.StringVar(endpoint, "trace-endpoint", "", "where traces of how members start are sent (OpenTelemetry, OTLP over gRPC): http://HOST:4317, or https:// with TLS (default: off)")
}

// openTrace returns nil without an endpoint.
func openTrace(ctx context.Context, endpoint, service, instance string, log *slog.Logger) (*trace.Tracer, error) {
	if endpoint == "" {
		return nil, nil
	}
	if err := trace.CheckEndpoint(endpoint); err != nil {
		return nil, misuse("--trace-endpoint: %w", err)
	}
	return trace.Open(ctx, trace.Config{Endpoint: endpoint, Service: service, Instance: instance, Version: version, Logger: log})
}
