// Where KubeletConfiguration's `tracing.endpoint` leads. Pure.

/** IANA's port of OTLP over gRPC, where the kubelet looks for a collector on its own machine. */
export const DEFAULT_ENDPOINT = 'localhost:4317';

export type Endpoint = { readonly url: string } | { readonly problem: string };

/**
 * The collector's address as the exporter takes it, from a gRPC name: "host:port", "dns:///host:port" or "unix:///path". The
 * connection has no TLS, as the kubelet's.
 */
export function tracingEndpoint(endpoint: string): Endpoint {
  if (!endpoint.includes('//')) return { url: `http://${endpoint}` };
  if (endpoint.startsWith('unix:///')) return { url: endpoint };
  const [, server, name = ''] = /^dns:\/\/([^/]*)\/(.*)$/.exec(endpoint) ?? [];
  if (server === '' && name !== '') return { url: `http://${name}` };
  if (endpoint.startsWith('dns:')) {
    return { problem: `a DNS server in a name is not supported, only "dns:///host:port": ${endpoint}` };
  }
  const scheme = endpoint.split(':')[0] ?? '';
  if (scheme === 'unix-abstract') return { problem: 'sockets with an abstract name are not supported' };
  return { problem: `unsupported scheme: ${scheme}. Options are none, dns and unix` };
}
