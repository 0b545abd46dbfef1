// Calls a webhook over HTTPS: by its URL, or through the endpoints of its service under the service's name
// (k8s.io/apiserver/pkg/util/webhook).

import { Agent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Service } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { ObjectLookup } from '../../kinds/resource.ts';
import { as } from '../../kinds/shapes.ts';
import type { Webhook } from '../../kinds/webhooks.ts';
import { CallFailure } from './review.ts';

/** Bytes of an answer. */
const MAX_ANSWER = 8 * 1024 * 1024;
const MAX_SHOWN = 1024;

/** Where a webhook is and how long it may take, of any kind of configuration. */
export type CalledWebhook = Pick<Webhook, 'clientConfig' | 'timeoutSeconds'>;

/** Where a webhook listens. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** The name that its certificate has. */
  readonly servername: string;
  /** As errors show it. */
  readonly url: string;
}

function serviceAddress(
  namespace: string,
  name: string,
  port: number,
  lookup: ObjectLookup,
): { readonly host: string; readonly port: number } {
  const stored = lookup.get('', 'services', namespace, name);
  if (stored === undefined) throw new CallFailure(`service ${JSON.stringify(name)} not found`);
  const spec = as<Service>(stored, 'Service').spec ?? {};
  if (spec.type === 'ExternalName') return { host: spec.externalName ?? '', port };
  const servicePort = (spec.ports ?? []).find((one) => one.port === port);
  if (servicePort === undefined) {
    throw new CallFailure(`no service port ${port} found for service ${JSON.stringify(name)}`);
  }
  const addresses: { host: string; port: number }[] = [];
  for (const object of lookup.each('discovery.k8s.io', 'endpointslices', namespace)) {
    if (getOwn(object.metadata.labels, 'kubernetes.io/service-name') !== name) continue;
    const slice = as<EndpointSlice>(object, 'EndpointSlice');
    const target = (slice.ports ?? []).find((one) => (one.name ?? '') === (servicePort.name ?? ''))?.port;
    if (target === undefined) continue;
    for (const { addresses: hosts = [], conditions } of slice.endpoints ?? []) {
      if (conditions?.ready === false) continue;
      for (const host of hosts) addresses.push({ host, port: target });
    }
  }
  const chosen = addresses[Math.floor(Math.random() * addresses.length)];
  if (chosen === undefined) {
    throw new CallFailure(`no endpoints available for service ${JSON.stringify(name)}`);
  }
  return chosen;
}

/** A service that cannot be resolved fails like a connection that cannot be made. */
function addressOf<T>(url: string, resolve: () => T): T {
  try {
    return resolve();
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    throw new CallFailure(`Post ${JSON.stringify(url)}: ${error.message}`);
  }
}

/** Throws CallFailure where there is nothing to call. */
export function targetOf({ clientConfig, timeoutSeconds = 10 }: CalledWebhook, lookup: ObjectLookup): Target {
  const query = `?timeout=${timeoutSeconds}s`;
  const service = clientConfig?.service;
  if (service !== undefined) {
    const { name = '', namespace = '', port = 443, path = '' } = service;
    const servername = `${name}.${namespace}.svc`;
    const whole = `${path.startsWith('/') ? path : `/${path}`}${query}`;
    const url = `https://${servername}:${port}${whole}`;
    return { ...addressOf(url, () => serviceAddress(namespace, name, port, lookup)), path: whole, servername, url };
  }
  const url = new URL(clientConfig?.url ?? '');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const path = `${url.pathname}${query}`;
  return {
    host,
    port: url.port === '' ? 443 : Number(url.port),
    path,
    servername: isIP(host) === 0 ? host : '',
    url: `https://${url.host}${path}`,
  };
}

export class WebhookClient {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The answer to `body` as parsed JSON. Rejects with CallFailure. */
  async call(hook: CalledWebhook, body: unknown, lookup: ObjectLookup): Promise<unknown> {
    const target = targetOf(hook, lookup);
    const fail = (why: string): CallFailure => new CallFailure(`Post ${JSON.stringify(target.url)}: ${why}`);
    const { code, text } = await this.#post(target, hook, JSON.stringify(body)).catch((error: unknown) => {
      throw fail(errorMessage(error));
    });
    if (code === 404) {
      throw new CallFailure('the server could not find the requested resource');
    }
    if (code < 200 || code > 299) {
      const shown = JSON.stringify(text.slice(0, MAX_SHOWN));
      throw new CallFailure(`an error on the server (${shown}) has prevented the request from succeeding`);
    }
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new CallFailure(`couldn't get version/kind; json parse error: ${errorMessage(error)}`);
    }
  }

  #post(target: Target, hook: CalledWebhook, body: string): Promise<{ code: number; text: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ code: number; text: string }>();
    const bundle = hook.clientConfig?.caBundle ?? '';
    const outgoing = httpsRequest(
      {
        agent: this.#agent,
        host: target.host,
        port: target.port,
        path: target.path,
        servername: target.servername,
        method: 'POST',
        ...(bundle === '' ? {} : { ca: Buffer.from(bundle, 'base64').toString('utf8') }),
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_ANSWER) outgoing.destroy(new Error(`the answer has more than ${MAX_ANSWER} bytes`));
          else chunks.push(chunk);
        });
        response.on('error', reject);
        response.on('end', () =>
          resolve({ code: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
        );
      },
    );
    outgoing.on('error', reject);
    const timer = this.#clock.after((hook.timeoutSeconds ?? 10) * 1000, () =>
      outgoing.destroy(new Error('context deadline exceeded')),
    );
    outgoing.end(body);
    return promise.finally(() => timer.cancel());
  }
}
