// The export of spans to an OpenTelemetry collector, where KubeletConfiguration asks for it. Part of the composition root:
// decides nothing.

import { randomUUID } from 'node:crypto';
import { DEFAULT_ENDPOINT, tracingEndpoint } from '../config/tracing-endpoint.ts';
import type { SpanExporter } from '../tracing/exporter.ts';
import type { AgentBase } from './base.ts';

/** Undefined where nothing is exported. OpenTelemetry's packages are loaded only where something is. */
export async function createTracing({ options, tracer, clock, log }: AgentBase): Promise<SpanExporter | undefined> {
  const { tracing } = options.config;
  if (tracing === undefined) return undefined;
  const { samplingRatePerMillion } = tracing;
  if (samplingRatePerMillion === 0) {
    log('warn', 'tracing is set without samplingRatePerMillion: no trace is sampled, as in the kubelet');
    return undefined;
  }
  const endpoint = tracingEndpoint(tracing.endpoint === '' ? DEFAULT_ENDPOINT : tracing.endpoint);
  // The configuration was checked when it was read.
  if ('problem' in endpoint) throw new Error(`tracing.endpoint: ${endpoint.problem}`);
  const { url } = endpoint;
  const { startSpanExporter } = await import('../tracing/exporter.ts');
  log('info', 'Exporting traces', { endpoint: url, samplingRatePerMillion });
  return startSpanExporter({
    url,
    samplingRatePerMillion,
    nodeName: options.nodeName,
    key: randomUUID(),
    tracer,
    clock,
    log,
  });
}
