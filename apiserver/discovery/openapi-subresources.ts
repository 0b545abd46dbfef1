// What OpenAPI documents show of subresources that lead into a kubelet, a pod or a service: their methods and parameters. What
// they answer is text, or whatever is at the other end.

import { getOwn } from '../../lib/own-property.ts';
import type { ResourceKind } from '../kinds/resource.ts';

export type HttpMethod = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'options' | 'head';

export interface Connection {
  readonly methods: readonly HttpMethod[];
  /** Name and type of each parameter of the query. */
  readonly query: Readonly<Record<string, 'string' | 'boolean' | 'integer'>>;
  /** Also with a path below it. */
  readonly hasPaths: boolean;
  /** As kube-apiserver names what is done: "connect", or "get" for what is read. */
  readonly action: 'connect' | 'get';
  readonly mediaType: string;
}

const STREAMS = {
  container: 'string',
  stderr: 'boolean',
  stdin: 'boolean',
  stdout: 'boolean',
  tty: 'boolean',
} as const;
const STREAM = { methods: ['get', 'post'], hasPaths: false, action: 'connect', mediaType: '*/*' } as const;
const PROXY: Connection = {
  ...STREAM,
  methods: ['get', 'post', 'put', 'patch', 'delete', 'options', 'head'],
  query: { path: 'string' },
  hasPaths: true,
};

const CONNECTIONS: Readonly<Record<string, Connection>> = {
  'pods/attach': { ...STREAM, query: STREAMS },
  'pods/exec': { ...STREAM, query: { command: 'string', ...STREAMS } },
  'pods/portforward': { ...STREAM, query: { ports: 'integer' } },
  'pods/log': {
    methods: ['get'],
    query: {
      container: 'string',
      follow: 'boolean',
      insecureSkipTLSVerifyBackend: 'boolean',
      limitBytes: 'integer',
      previous: 'boolean',
      sinceSeconds: 'integer',
      stream: 'string',
      tailLines: 'integer',
      timestamps: 'boolean',
    },
    hasPaths: false,
    action: 'get',
    mediaType: 'text/plain',
  },
  'nodes/proxy': PROXY,
  'pods/proxy': PROXY,
  'services/proxy': PROXY,
};

/** Undefined for a subresource that is an object. */
export function connectionOf(row: ResourceKind, subresource: string): Connection | undefined {
  return row.group === '' ? getOwn(CONNECTIONS, `${row.plural}/${subresource}`) : undefined;
}

/** The definition of a subresource's own kind: "io.k8s.api.autoscaling.v1.Scale". */
export function definitionOf({ group, version, kind }: { group: string; version: string; kind: string }): string {
  return `io.k8s.api.${group === '' ? 'core' : (group.split('.')[0] ?? '')}.${version}.${kind}`;
}
