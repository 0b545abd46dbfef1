// Hostile requests for every kind, subresource and option: nothing answers with an error of the server's own, every refusal
// is a Status, nothing outside of the sender's namespace changes, and nothing stays in memory or in the store.

import { PATH_NOT_FOUND } from '../../../apiserver/http/paths.ts';
import { decodeProtobuf } from '../../../apiserver/http/protobuf.ts';
import { MAGIC } from '../../../apiserver/http/protobuf-messages.ts';
import { at, TestApiServer } from '../../support/api-server.ts';
import { Sender, type Sent } from '../callers/send.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { seededRandom } from '../random.ts';
import { type FuzzRequest, fuzzRequest, type Seen } from '../requests/requests.ts';
import { FuzzStand } from '../requests/stand.ts';

const AT_ONCE = 8;
/** After so many requests the sandbox is emptied, and what is outside is compared. */
const EPOCH = 2000;
const DRY_SHARE = 0.5;
const KEPT = 32;
/** History is at most 32 MiB; pages that it no longer needs stay in the file. */
const MOST_STORED_BYTES = 128 * 1024 * 1024;
/** Parts of requests that connections, caches and the last requests may still have. */
const MOST_RETAINED = 500;
const MOST_HEAP_GROWTH = 24 * 1024 * 1024;

/** An apply of what the type does not describe, or over it; groups or extras without a user to be. */
const UPSTREAMS_500 = [
  'failed to create typed patch object',
  'failed to create typed live object',
  'without impersonating a user',
];

/** What kube-apiserver answers with 5xx, too. */
function isUpstreams({ method, path, headers }: FuzzRequest, { code, text }: Sent): boolean {
  // The answer to a HEAD has no words.
  if (code === 500 && method === 'HEAD') return headers['impersonate-user'] === '';
  if (code === 504) return text.includes('Too large resource version');
  if (code === 500) return UPSTREAMS_500.some((words) => text.includes(words));
  // No kubelet and no endpoint is there.
  return (code === 502 || code === 503) && /\/(proxy|log|exec|attach|portforward)\b/.test(path);
}

function isStatus(text: string, code: number): boolean {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
  const [kind, status, own, message] = ['kind', 'status', 'code', 'message'].map((field) => at(value, field));
  return kind === 'Status' && status === 'Failure' && own === code && typeof message === 'string' && message !== '';
}

/** A refusal in protobuf as the JSON that it stands for. */
function readable(sent: Sent): Sent {
  const isProtobuf = sent.code >= 400 && sent.bytes.subarray(0, 4).equals(MAGIC);
  return isProtobuf ? { ...sent, text: JSON.stringify(decodeProtobuf(sent.bytes)) } : sent;
}

/** What is wrong with the answer; '' for nothing. */
function fault(request: FuzzRequest, sent: Sent): string {
  const { code, text } = sent;
  if (code === 0) return 'no answer';
  if (code >= 500 && !isUpstreams(request, sent)) return 'an error of the server';
  // To an expectation that it does not know the HTTP server itself answers, as Go's does.
  if (code === 417) return '';
  const isHealth = /^\/(healthz|livez|readyz)/.test(request.path);
  // A path that is not served, as upstream: words, no Status.
  if (code === 404 && text === PATH_NOT_FOUND.body) return '';
  if (code >= 400 && request.method !== 'HEAD' && !isHealth && !isStatus(text, code))
    return 'a refusal that is no Status';
  return '';
}

function remember(list: string[], value: unknown): void {
  if (typeof value !== 'string' || value === '') return;
  list.push(value);
  if (list.length > KEPT) list.shift();
}

/** Continue tokens and revisions for later requests. */
function learn(seen: Seen, text: string): void {
  const token = /"continue":"([^"]+)"/.exec(text)?.[1];
  const revision = /"resourceVersion":"(\d+)"/.exec(text)?.[1];
  remember(seen.tokens, token);
  remember(seen.revisions, revision);
}

function described({ method, path, headers, raw }: FuzzRequest): string {
  const body = raw === undefined ? '' : typeof raw === 'string' ? raw : `base64 ${Buffer.from(raw).toString('base64')}`;
  return `${method} ${path} ${JSON.stringify(headers)} ${body.slice(0, 1500)}`;
}

/** Paths whose objects differ. */
function differences(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): string[] {
  const paths = new Set([...before.keys(), ...now.keys()]);
  return [...paths].filter((path) => before.get(path) !== now.get(path));
}

async function run({ rounds, seed, log }: CampaignContext): Promise<Figures> {
  const random = seededRandom(seed);
  const server = await TestApiServer.start();
  const sender = new Sender(server.server.url, server.server.pki.ca.cert);
  let [tried, refused, crashed, lost] = [0, 0, 0, 0];
  const codes = new Map<number, number>();
  try {
    const stand = await FuzzStand.make(server, seed);
    const { outside: before, examples } = await stand.look();
    const seen: Seen = { objects: examples, tokens: [], revisions: [] };
    log(`${before.size} objects outside of the sandbox, of ${examples.size} kinds`);
    const one = async ({ dry, request }: { dry: boolean; request: FuzzRequest }): Promise<void> => {
      const sent = readable(await sender.send(dry ? server.admin : stand.tenant, request));
      tried++;
      codes.set(sent.code, (codes.get(sent.code) ?? 0) + 1);
      if (sent.code >= 400 && sent.code < 500) refused++;
      learn(seen, sent.text);
      const why = fault(request, sent);
      if (why === '') return;
      crashed++;
      log(`seed ${seed}: ${why}: ${sent.code} ${sent.text.slice(0, 400)} for ${described(request)}`);
    };
    let halfway: ReturnType<FuzzStand['retained']> | undefined;
    for (let done = 0; done < rounds; done += EPOCH) {
      const batch = Array.from({ length: Math.min(EPOCH, rounds - done) }, () => {
        const dry = random.next() < DRY_SHARE;
        return { dry, request: fuzzRequest(random, dry, seen) };
      });
      const worker = async (): Promise<void> => {
        for (let next = batch.pop(); next !== undefined; next = batch.pop()) await one(next);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      for (const line of server.lines.splice(0)) {
        if (!line.includes('request failed')) continue;
        crashed++;
        log(line.slice(0, 1500));
      }
      await stand.reset();
      const { outside, leftovers } = await stand.look();
      for (const path of leftovers) log(`cannot be removed: ${path}`);
      const changed = differences(before, outside);
      for (const path of changed) log(`has changed: ${path}`);
      lost += leftovers.length + changed.length;
      if (halfway === undefined && done >= rounds / 2) halfway = stand.retained();
      if (lost > 0) break;
    }
    const { parts, heapBytes } = stand.retained();
    const growth = heapBytes - (halfway?.heapBytes ?? heapBytes);
    const stored = stand.storedBytes();
    log(
      `answers: ${[...codes]
        .toSorted()
        .map(([code, count]) => `${code}: ${count}`)
        .join(', ')}`,
    );
    log(`store: ${stored} bytes; retained: ${parts} parts of requests; heap: ${growth} bytes more than halfway`);
    if (stored > MOST_STORED_BYTES || parts > MOST_RETAINED || growth > MOST_HEAP_GROWTH) crashed++;
  } finally {
    sender.close();
    await server.stop();
  }
  return { tried, refused, crashed, lost };
}

export const campaign: Campaign = {
  name: 'requests',
  what: 'bodies, patches, paths, headers, selectors, continue tokens and options for every kind of the API server, real and as dry runs; a round is one request',
  // A unit test runs it with a seed of its own.
  quickRounds: 0,
  rounds: 100_000,
  run,
};
