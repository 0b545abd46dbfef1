// ComponentStatuses: whether other components of the control plane are healthy, asked when a client asks, as kube-apiserver does it.
// What they answer is not kept.

import type { Clock } from '../lib/clock.ts';
import { errorMessage } from '../lib/errors.ts';
import { httpGet } from '../lib/http-get.ts';
import { notFound } from './errors.ts';
import type { KubeObject } from './kinds/resource.ts';
import type { ComputedObjects, Registry } from './registry/registry.ts';

/** A component and the address of its health: "https://127.0.0.1:10259/healthz". Its certificate is not verified. */
export interface Component {
  readonly name: string;
  readonly url: string;
}

/** One that does not answer within this is not healthy, ms. */
const TIMEOUT_MS = 5000;
const MAX_BODY_BYTES = 4096;
const PLURAL = 'componentstatuses';

export interface ComponentAnswer {
  readonly name: string;
  /** undefined: there was none; `message` says why. */
  readonly code: number | undefined;
  readonly message: string;
}

/** Healthy is what answers 200. The message is what the component says. Pure. */
export function componentStatus({ name, code, message }: ComponentAnswer): KubeObject {
  const status = code === 200 ? 'True' : 'False';
  return {
    kind: 'ComponentStatus',
    apiVersion: 'v1',
    metadata: { name },
    conditions: [{ type: 'Healthy', status, message }],
  };
}

async function ask({ name, url }: Component, clock: Pick<Clock, 'after'>): Promise<ComponentAnswer> {
  const { protocol, hostname, port, pathname } = new URL(url);
  const https = protocol === 'https:';
  const request = {
    scheme: https ? ('https' as const) : ('http' as const),
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? (https ? 443 : 80) : Number(port),
    target: pathname,
    headers: new Map<string, readonly string[]>(),
  };
  try {
    const { status, body } = await httpGet(request, { clock, timeoutMs: TIMEOUT_MS, maxBodyBytes: MAX_BODY_BYTES });
    return { name, code: status, message: body.toString() };
  } catch (error) {
    return { name, code: undefined, message: errorMessage(error) };
  }
}

/** Asked anew before each read. */
export function componentObjects(components: readonly Component[], clock: Pick<Clock, 'after'>): ComputedObjects {
  let statuses: readonly KubeObject[] = [];
  return {
    ready: async () => {
      const answers = await Promise.all(components.map((component) => ask(component, clock)));
      statuses = answers.map(componentStatus);
    },
    list: () => statuses,
    get: (_namespace, name) => {
      const found = statuses.find(({ metadata }) => metadata.name === name);
      if (found === undefined) throw notFound({ group: '', plural: PLURAL }, name);
      return found;
    },
  };
}

export function serveComponentStatuses(registry: Registry, components: readonly Component[]): void {
  if (!registry.hasRow('', PLURAL)) return;
  registry.compute(registry.rowOf('', PLURAL), componentObjects(components, registry.clock));
}
