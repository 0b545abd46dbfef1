import { expect, test } from 'vitest';
import { tracingEndpoint } from '../../../../agent/config/tracing-endpoint.ts';

test.each([
  ['localhost:4317', { url: 'http://localhost:4317' }],
  ['[::1]:4317', { url: 'http://[::1]:4317' }],
  ['dns:///collector.example:4317', { url: 'http://collector.example:4317' }],
  ['unix:///run/otel.sock', { url: 'unix:///run/otel.sock' }],
])('%s leads to a collector', (endpoint, result) => {
  expect(tracingEndpoint(endpoint)).toEqual(result);
});

test.each([
  ['http://localhost:4317', /unsupported scheme: http\./],
  ['dns://8.8.8.8/collector:4317', /a DNS server in a name is not supported/],
  ['dns://localhost:4317', /only "dns:\/\/\/host:port"/],
  ['unix-abstract://otel', /abstract name/],
])('%s is refused', (endpoint, problem) => {
  expect(tracingEndpoint(endpoint)).toEqual({ problem: expect.stringMatching(problem) });
});
