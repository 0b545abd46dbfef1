// Static pods from a URL (staticPodURL): fetched every httpCheckFrequency, one Pod or a PodList. What cannot be fetched or
// used is logged once, and the pods last fetched keep running.

import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Pod } from '../../client/types.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Log } from '../../lib/log.ts';
import { request as httpRequest } from '../../lib/node-http.ts';
import { rfc3339Milli } from '../../lib/rfc3339.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { PodSource } from '../ports/api.ts';
import { decodeAside } from './decode-aside.ts';
import { sameButSeen } from './file-source.ts';
import { MAX_MANIFEST_BYTES, podsOf } from './manifest.ts';
import { Complaints, podSet } from './pod-set.ts';

export interface HttpPodSourceOptions {
  readonly url: string;
  /** staticPodURLHeader: sent with every request. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly nodeName: string;
  /** httpCheckFrequency, ms. */
  readonly checkMs: number;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
  readonly fetch?: typeof fetchText;
}

/** The kubelet's figures: how long an answer may take (ms), and how often Go's client lets itself be sent elsewhere. */
const TIMEOUT_MS = 10_000;
const MAX_REDIRECTS = 10;

export function createHttpPodSource(options: HttpPodSourceOptions): PodSource {
  return new HttpPodSource(options);
}

class HttpPodSource implements PodSource {
  readonly name = 'http';
  readonly #options: HttpPodSourceOptions;
  readonly #complaints: Complaints;
  #listener: ((pods: ReadonlyMap<string, Pod>) => void) | undefined;
  #timer: Timer | undefined;
  #body: string | undefined;
  /** What is wrong with the answer that is in use. */
  #standing: ReadonlyMap<string, string> = new Map();
  #pods: ReadonlyMap<string, Pod> = new Map();

  constructor(options: HttpPodSourceOptions) {
    this.#options = options;
    this.#complaints = new Complaints(options.log);
  }

  start(listener: (pods: ReadonlyMap<string, Pod>) => void): void {
    this.#listener = listener;
    void this.#check();
  }

  stop(): void {
    this.#listener = undefined;
    this.#timer?.cancel();
  }

  async #check(): Promise<void> {
    const { url, clock, checkMs } = this.#options;
    try {
      await this.#fetch();
      this.#complaints.are(this.#standing);
    } catch (error) {
      this.#complaints.are(new Map([[url, errorMessage(error)]]));
    }
    if (this.#listener !== undefined) this.#timer = clock.after(checkMs, () => void this.#check());
  }

  async #fetch(): Promise<void> {
    const { url, headers, nodeName, clock, tracer, fetch = fetchText } = this.#options;
    const body = await tracer.within({ cause: 'httpCheckFrequency' }, () =>
      tracer.span('api', 'GET staticPodURL', { url }, () => fetch(url, headers, TIMEOUT_MS)),
    );
    if (body === this.#body) return;
    const complaints = new Map<string, string>();
    if (body === '') {
      // Nothing at all is taken as "no pods", and as a mistake.
      this.#standing = complaints.set(url, 'zero-length data received');
      this.#body = body;
      this.#list(new Map());
      return;
    }
    const seen = rfc3339Milli(clock.now());
    const parsed = podsOf(await decodeAside(body), { source: 'http', location: url, nodeName, seen });
    const found = parsed.map((pod) => {
      const before = this.#pods.get(pod.metadata.uid);
      return { pod: before !== undefined && sameButSeen(before, pod) ? before : pod, from: url };
    });
    const pods = podSet(found, (from, what) => complaints.set(from, what));
    this.#standing = complaints;
    this.#body = body;
    this.#list(pods);
  }

  #list(pods: ReadonlyMap<string, Pod>): void {
    this.#pods = pods;
    this.#listener?.(pods);
  }
}

/** The body of a 200. Rejects with Error for anything else, for an answer that is too long or takes too long (ms). */
export async function fetchText(
  url: string,
  headers: Readonly<Record<string, readonly string[]>>,
  timeoutMs: number,
): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs);
  let target = new URL(url);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await get(target, headers, signal);
    const { statusCode = 0, statusMessage = '' } = response;
    const { location } = response.headers;
    if (statusCode >= 300 && statusCode < 400 && location !== undefined) {
      response.destroy();
      target = new URL(location, target);
      continue;
    }
    if (statusCode !== 200) {
      response.destroy();
      throw new Error(`${statusCode} ${statusMessage}`);
    }
    return await bodyOf(response);
  }
  throw new Error(`stopped after ${MAX_REDIRECTS} redirects`);
}

function get(
  target: URL,
  headers: Readonly<Record<string, readonly string[]>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const request = target.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]]));
    request(target, { headers: sent, signal, agent: false }, resolve).on('error', reject).end();
  });
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    const bytes: Buffer = chunk;
    length += bytes.length;
    if (length > MAX_MANIFEST_BYTES) {
      response.destroy();
      throw new Error(`the answer is larger than ${MAX_MANIFEST_BYTES} bytes`);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}
