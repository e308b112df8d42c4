// Package watch tests what deploy/ has for Prometheus and Grafana: alert rules and the dashboard are of
// metrics that are there, and say what to do. Rules are run by promtool, where it is.
package watch
