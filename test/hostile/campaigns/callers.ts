// Generated callers with generated requests against a real API server and a real kubelet server in this process: no caller
// reads what is not theirs, no caller changes what is not theirs, nothing answers with an internal error or hangs.

import { errorMessage } from '../../../lib/errors.ts';
import { at, TestApiServer } from '../../support/api-server.ts';
import { type HostileCaller, makeCallers } from '../callers/callers.ts';
import { kubeletRequest, startKubelet } from '../callers/kubelet.ts';
import { effective, type Judgement, judge } from '../callers/oracle.ts';
import { type HostileRequest, hostileRequest } from '../callers/requests.ts';
import { Sender } from '../callers/send.ts';
import { buildWorld, NAMESPACES, type World } from '../callers/world.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { type Random, seededRandom } from '../random.ts';

const AT_ONCE = 8;
/** After so many requests what nodes rightly deleted is made again, and what no caller may change is checked. */
const EPOCH = 500;
const KUBELET_SHARE = 0.06;

interface Target {
  readonly sender: Sender;
  readonly request: (random: Random) => HostileRequest;
  /** Impersonation is the API server's: a kubelet knows only who calls. */
  readonly impersonates: boolean;
}

/** A request that this caller may be let send: what administrators write would change what others may read. */
function choose(random: Random, caller: HostileCaller, target: Target): HostileRequest {
  for (;;) {
    const request = target.request(random);
    const who = effective(caller, request);
    const powerful = who.kind === 'caller' && (who.reader.kind === 'everything' || who.reader.kind === 'scheduler');
    if (!target.impersonates || request.method === 'GET' || request.method === 'HEAD' || !powerful) return request;
  }
}

/** At a kubelet everything is for administrators alone. */
function judgeKubelet(world: World, caller: HostileCaller, sent: { code: number; text: string }): Judgement {
  const may = caller.reader.kind === 'everything' && caller.master === true;
  const done = sent.code === 101 || (sent.code > 0 && sent.code < 300);
  return {
    leaks: may ? [] : world.markers.leaks(sent.text, { kind: 'nothing' }),
    wrong: done && !may ? `${sent.code} from the kubelet` : '',
    // The pretended runtime has no streaming server, which administrators get as an error.
    crashed: sent.code === 0 || (sent.code >= 500 && !may),
    refused: sent.code === 401 || sent.code === 403,
  };
}

/** The fixed state, or why it cannot be read any more. */
async function fixedStateOrWhyNot(stand: TestApiServer): Promise<string> {
  try {
    return await fixedState(stand);
  } catch (error) {
    return errorMessage(error);
  }
}

/** What no caller may change, as one text. Rejects when part of it is gone. */
async function fixedState(stand: TestApiServer): Promise<string> {
  const parts: unknown[] = [];
  for (const namespace of NAMESPACES) {
    for (const [plural, field] of [
      ['secrets', 'data'],
      ['configmaps', 'data'],
      ['serviceaccounts', 'metadata'],
    ] as const) {
      const list = await stand.admit('GET', `/api/v1/namespaces/${namespace}/${plural}`);
      const items = at(list, 'items');
      if (Array.isArray(items)) for (const item of items) parts.push([at(item, 'metadata', 'name'), at(item, field)]);
    }
    for (const node of ['n1', 'n2']) {
      const claim = await stand.admit('GET', `/api/v1/namespaces/${namespace}/persistentvolumeclaims/claim-${node}`);
      parts.push(at(claim, 'spec'), at(claim, 'metadata', 'labels'), at(claim, 'metadata', 'finalizers'));
    }
  }
  const volumes = await stand.admit('GET', '/api/v1/persistentvolumes');
  const items = at(volumes, 'items');
  if (Array.isArray(items)) for (const item of items) parts.push(at(item, 'spec'));
  for (const name of ['n1', 'n2']) {
    const node = await stand.admit('GET', `/api/v1/nodes/${name}`);
    const labels = Object.keys(Object(at(node, 'metadata', 'labels'))).filter(
      (label) => label.includes('k8s.io') || label.includes('kubernetes.io'),
    );
    parts.push(
      labels,
      at(node, 'spec', 'taints'),
      at(node, 'spec', 'configSource'),
      at(node, 'metadata', 'ownerReferences'),
    );
  }
  return JSON.stringify(parts);
}

class Tally {
  tried = 0;
  refused = 0;
  crashed = 0;
  lost = 0;
  readonly #log: (line: string) => void;
  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  add(caller: HostileCaller, request: HostileRequest, code: number, text: string, judgement: Judgement): void {
    const { leaks, wrong, crashed, refused } = judgement;
    this.tried++;
    if (refused) this.refused++;
    if (crashed) this.crashed++;
    if (leaks.length > 0 || wrong !== '') this.lost++;
    if (!crashed && leaks.length === 0 && wrong === '') return;
    const problem = [...leaks.map((leak) => `shows ${leak}`), wrong, crashed ? 'crashed' : ''].filter(
      (part) => part !== '',
    );
    const { method, path, headers, body } = request;
    this.#log(
      `${caller.name}: ${method} ${path} ${JSON.stringify(headers)} ${JSON.stringify(body)}: ${code} ${problem.join(', ')}: ${text.slice(0, 300)}`,
    );
  }

  changed(what: string): void {
    this.lost++;
    this.#log(`what no caller may change has changed: ${what}`);
  }

  figures(): Figures {
    return { tried: this.tried, refused: this.refused, crashed: this.crashed, lost: this.lost };
  }
}

async function run({ rounds, seed, directory, log }: CampaignContext): Promise<Figures> {
  const random = seededRandom(seed);
  const stand = await TestApiServer.start();
  try {
    const world = await buildWorld(stand);
    const callers = await makeCallers(stand);
    const kubelet = await startKubelet(stand, world.markers, directory);
    const api = new Sender(stand.server.url, stand.server.pki.ca.cert);
    const node = new Sender(`https://127.0.0.1:${kubelet.port}`);
    const toServer: Target = { sender: api, request: (r) => hostileRequest(r, world), impersonates: true };
    const toKubelet: Target = { sender: node, request: kubeletRequest, impersonates: false };
    const tally = new Tally(log);
    const generate = (): readonly [HostileCaller, Target, HostileRequest, string | undefined] => {
      const caller = random.pick(callers);
      const target = random.next() < KUBELET_SHARE ? toKubelet : toServer;
      return [caller, target, choose(random, caller, target), caller.token?.(random)];
    };
    const one = async ([caller, target, request, token]: ReturnType<typeof generate>): Promise<void> => {
      const { method, path, headers, body } = request;
      const outgoing = { method, path, headers, body, ...(token === undefined ? {} : { token }) };
      const sent = await target.sender.send(caller.as, outgoing);
      const judgement =
        target === toKubelet ? judgeKubelet(world, caller, sent) : judge(world.markers, caller, request, sent);
      tally.add(caller, request, sent.code, sent.text, judgement);
    };
    try {
      const before = await fixedState(stand);
      for (let done = 0; done < rounds; done += EPOCH) {
        // Made before the first is sent, so that the same seed makes the same requests.
        const batch = Array.from({ length: Math.min(EPOCH, rounds - done) }, generate);
        const worker = async (): Promise<void> => {
          for (let next = batch.pop(); next !== undefined; next = batch.pop()) await one(next);
        };
        await Promise.all(Array.from({ length: AT_ONCE }, worker));
        const now = await fixedStateOrWhyNot(stand);
        if (now !== before) {
          // Nothing that comes after could be checked.
          tally.changed(now);
          break;
        }
        await world.reseed();
        stand.lines.length = 0;
      }
    } finally {
      api.close();
      node.close();
      await kubelet.close();
    }
    return tally.figures();
  } finally {
    await stand.stop();
  }
}

export const campaign: Campaign = {
  name: 'callers',
  what: 'requests of nodes, accounts, impersonators and forgers to the API server and the kubelet; a round is one request',
  quickRounds: 600,
  rounds: 60_000,
  run,
};
