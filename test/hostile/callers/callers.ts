// Everybody who calls: those who are what they say, those who are nearly, and those who are not. Each comes with what
// it may read by the campaign's own judgement.

import { ServiceAccountTokens } from '../../../apiserver/auth/tokens.ts';
import { generateKeyPair } from '../../../apiserver/pki/keys.ts';
import { epochMs } from '../../../lib/clock.ts';
import { at, type Credentials, type TestApiServer } from '../../support/api-server.ts';
import type { Random } from '../random.ts';
import type { Reader } from './markers.ts';

const HOUR_MS = 3_600_000;

export interface HostileCaller {
  readonly name: string;
  readonly reader: Reader;
  /** Whether the caller authenticates: the others get 401 or, where no identity is needed, health and version. */
  readonly known: boolean;
  /** May act as others. */
  readonly master?: boolean;
  /** Only reads are sent for it: what it may write would change what the others may read. */
  readonly readsOnly?: boolean;
  readonly as?: Credentials;
  /** Another bearer token for each request. */
  readonly token?: (random: Random) => string;
}

const NOTHING: Reader = { kind: 'nothing' };
const EVERYTHING: Reader = { kind: 'everything' };

/** A token with one character changed, cut, or with a head of its own. */
function altered(token: string, random: Random): string {
  const [head = '', body = '', signature = ''] = token.split('.');
  const json = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const place = random.below(token.length - 1);
  const other = token[place] === 'A' ? 'B' : 'A';
  const claims: object = JSON.parse(Buffer.from(body, 'base64url').toString());
  return random.pick([
    // The last character of a signature has bits that mean nothing, so it is left alone.
    () => `${token.slice(0, place)}${other}${token.slice(place + 1)}`,
    () => token.slice(0, place),
    () => `${json({ alg: 'none' })}.${body}.`,
    () => `${json({ alg: 'HS256' })}.${body}.${signature}`,
    () => `${head}.${json({ ...claims, sub: 'system:serviceaccount:kube-system:admin' })}.${signature}`,
    () => `${head}.${json({ ...claims, exp: 4_102_444_800 })}.${signature}`,
    () => `${head}.${body}.${signature}.${signature}`,
    () => `${head}.${body}`,
  ])();
}

async function tokensOf(stand: TestApiServer): Promise<Readonly<Record<string, string>>> {
  const issue = async (account: string, spec: object = {}): Promise<string> => {
    const path = `/api/v1/namespaces/a/serviceaccounts/${account}/token`;
    return String(at(await stand.admit('POST', path, { spec }), 'status', 'token'));
  };
  const object = (kind: string, name: string, rest: object = {}): object => ({
    apiVersion: 'v1',
    kind,
    metadata: { name },
    ...rest,
  });
  const bound = (kind: string, name: string): object => ({ boundObjectRef: { apiVersion: 'v1', kind, name } });
  const removable: Record<string, string> = {};
  const containers = [{ name: 'c', image: 'x:1' }];
  await stand.admit('POST', '/api/v1/namespaces/a/serviceaccounts', object('ServiceAccount', 'doomed'));
  await stand.admit(
    'POST',
    '/api/v1/namespaces/a/pods',
    object('Pod', 'doomed', { spec: { serviceAccountName: 'other', containers } }),
  );
  await stand.admit('POST', '/api/v1/nodes', object('Node', 'doomed'));
  removable['a token of a deleted account'] = await issue('doomed');
  removable['a token of a deleted pod'] = await issue('other', bound('Pod', 'doomed'));
  removable['a token of a deleted Node'] = await issue('other', bound('Node', 'doomed'));
  removable['a token for somebody else'] = await issue('other', { audiences: ['vault'] });
  const good = {
    'an account': await issue('other'),
    'a pod': await issue('account-n1', bound('Pod', 'pod-n1')),
    'a token bound to a Node': await issue('other', bound('Node', 'n1')),
  };
  for (const path of ['namespaces/a/serviceaccounts/doomed', 'namespaces/a/pods/doomed', 'nodes/doomed']) {
    await stand.admit('DELETE', `/api/v1/${path}`);
  }
  const account = await stand.admit('GET', '/api/v1/namespaces/a/serviceaccounts/other');
  const request = {
    namespace: 'a',
    serviceAccount: { name: 'other', uid: String(at(account, 'metadata', 'uid')) },
    audiences: ['https://kubernetes.default.svc.cluster.local'],
    expirationSeconds: 3600,
  };
  const now = stand.clock.now();
  removable['an expired token'] = new ServiceAccountTokens(stand.server.pki.serviceAccount.key).issue(
    request,
    epochMs(now - 2 * HOUR_MS),
  ).token;
  removable['a token of another key'] = new ServiceAccountTokens(generateKeyPair().privateKey).issue(
    request,
    now,
  ).token;
  return { ...good, ...removable };
}

export async function makeCallers(stand: TestApiServer): Promise<readonly [HostileCaller, ...HostileCaller[]]> {
  const { clients, serving } = stand.server.pki;
  const other = await stand.otherCa();
  const tokens = await tokensOf(stand);
  const known = (name: string, as: Credentials, reader: Reader, more: Partial<HostileCaller> = {}): HostileCaller => ({
    name,
    as,
    reader,
    known: true,
    ...more,
  });
  const refused = (name: string, as: Credentials): HostileCaller => ({ name, as, reader: NOTHING, known: false });
  const node = async (name: string): Promise<HostileCaller> =>
    known(`system:node:${name}`, await stand.node(name), { kind: 'node', node: name });
  // Chosen more often than the others: they have the most to lose.
  const nodes = [await node('n1'), await node('n2')] as const;
  const real = tokens['an account'] ?? '';
  const bearers = Object.entries(tokens).map(([name, token]): HostileCaller => {
    const good = name === 'an account' || name === 'a pod' || name === 'a token bound to a Node';
    return { name, reader: NOTHING, known: good, token: () => token };
  });
  return [
    ...nodes,
    ...nodes,
    ...nodes,
    ...nodes,
    await node('n3'),
    known('a node without a name', await stand.certificate('system:node:', 'system:nodes'), NOTHING),
    known('a node without its group', await stand.certificate('system:node:n1'), NOTHING),
    known('another of the group of nodes', await stand.certificate('n1', 'system:nodes'), NOTHING),
    known('admin', clients.admin, EVERYTHING, { master: true, readsOnly: true }),
    known('controllers', clients['controller-manager'], EVERYTHING, { readsOnly: true }),
    known('scheduler', clients.scheduler, { kind: 'scheduler' }, { readsOnly: true }),
    ...bearers,
    { name: 'an altered token', reader: NOTHING, known: false, token: (random) => altered(real, random) },
    { name: 'nobody', reader: NOTHING, known: false },
    refused('an admin of another CA', await stand.certificate('kubernetes-admin', 'system:masters', { ca: other })),
    refused('a node of another CA', await stand.certificate('system:node:n1', 'system:nodes', { ca: other })),
    refused(
      'the serving certificate of a node',
      await stand.certificate('system:node:n1', 'system:nodes', { usage: 'server' }),
    ),
    refused('the serving certificate of the API server', serving),
  ];
}
