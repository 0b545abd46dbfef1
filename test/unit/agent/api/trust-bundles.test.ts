import { describe, expect, test, vi } from 'vitest';
import { type ClusterTrustBundle, normalizeAnchors, trustAnchors } from '../../../../agent/api/trust-anchors.ts';
import { TrustBundles } from '../../../../agent/api/trust-bundles.ts';
import type { TrustRequest } from '../../../../agent/ports/api.ts';
import type { ListOf, WatchEvent } from '../../../../client/api.ts';
import { ApiError } from '../../../../client/errors.ts';
import { ManualClock } from '../volumes/support.ts';

const block = (text: string, type = 'CERTIFICATE') =>
  `-----BEGIN ${type}-----\n${Buffer.from(text).toString('base64')}\n-----END ${type}-----\n`;
const decoded = (pem: string) =>
  [...pem.matchAll(/-----BEGIN CERTIFICATE-----\n([\s\S]*?)\n-----END CERTIFICATE-----\n/g)]
    .map(([, body = '']) => Buffer.from(body, 'base64').toString())
    .sort();
const bundle = (
  name: string,
  signerName: string,
  labels: Record<string, string>,
  ...anchors: string[]
): ClusterTrustBundle => ({
  metadata: { name, uid: name, resourceVersion: '1', labels },
  spec: { ...(signerName === '' ? {} : { signerName }), trustBundle: anchors.map((one) => block(one)).join('junk\n') },
});
const ALL = [
  bundle('plain', '', {}, 'P'),
  bundle('a.io:s:1', 'a.io/s', { live: 'yes', era: 'old' }, 'A', 'B'),
  bundle('a.io:s:2', 'a.io/s', { live: 'yes' }, 'B', 'C'),
  bundle('a.io:s:3', 'a.io/s', { live: 'no' }, 'D'),
  bundle('b.io:s:1', 'b.io/s', { live: 'yes' }, 'E'),
];
const request = (more: Partial<TrustRequest>): TrustRequest => ({
  name: undefined,
  signerName: undefined,
  labelSelector: undefined,
  optional: false,
  ...more,
});

describe('trust anchors', () => {
  test.each<[string, Partial<TrustRequest>, readonly string[]]>([
    ['of a bundle by name', { name: 'plain' }, ['P']],
    ['of a signer’s bundles, each once', { signerName: 'a.io/s', labelSelector: {} }, ['A', 'B', 'C', 'D']],
    ['with a label', { signerName: 'a.io/s', labelSelector: { matchLabels: { live: 'yes' } } }, ['A', 'B', 'C']],
    [
      'with an expression',
      { signerName: 'a.io/s', labelSelector: { matchExpressions: [{ key: 'era', operator: 'DoesNotExist' }] } },
      ['B', 'C', 'D'],
    ],
    [
      'with In and NotIn',
      {
        signerName: 'a.io/s',
        labelSelector: {
          matchExpressions: [
            { key: 'live', operator: 'In', values: ['yes', 'no'] },
            { key: 'era', operator: 'NotIn', values: ['old'] },
          ],
        },
      },
      ['B', 'C', 'D'],
    ],
    ['of a missing bundle that is optional', { name: 'none', optional: true }, []],
    ['without a selector, which matches nothing', { signerName: 'a.io/s', optional: true }, []],
  ])('%s', (_, more, expected) => {
    expect(decoded(trustAnchors(request(more), ALL, 'seed'))).toEqual(expected);
  });

  test.each<[Partial<TrustRequest>, string]>([
    [{ name: 'none' }, 'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "none" not found'],
    [{ signerName: 'a.io/s' }, 'combination of signerName and labelSelector matched zero ClusterTrustBundles'],
    [{ signerName: 'c.io/s', labelSelector: {} }, 'matched zero ClusterTrustBundles'],
    [{}, 'ClusterTrustBundle projection requires either name or signerName to be set'],
  ])('for %j are refused', (more, message) => {
    expect(() => trustAnchors(request(more), ALL, 'seed')).toThrow(message);
  });

  test('lose headers and words between blocks, and are wrapped at 64 characters', () => {
    const long = 'x'.repeat(100);
    const pem = normalizeAnchors([`words\n${block(long)}more words`], 's');
    expect(decoded(pem)).toEqual([long]);
    expect(pem.split('\n').every((line) => line.length <= 64)).toBe(true);
  });

  test('stay in one order through an agent’s life, whatever the order of bundles', () => {
    const texts = ALL.map(({ spec }) => spec?.trustBundle ?? '');
    expect(normalizeAnchors(texts.toReversed(), 'one')).toBe(normalizeAnchors(texts, 'one'));
    const orders = new Set(['one', 'two', 'three', 'four'].map((seed) => normalizeAnchors(texts, seed)));
    expect(orders.size).toBeGreaterThan(1);
  });
});

class Server {
  readonly calls: string[] = [];
  version: string | undefined = 'v1beta1';
  bundles = ALL;
  tell: (event: WatchEvent<ClusterTrustBundle>) => void = () => undefined;
  async get<T>(path: string): Promise<T> {
    this.calls.push(`GET ${path}`);
    if (this.version === undefined || !path.endsWith(`/${this.version}`)) {
      throw new ApiError(
        { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 },
        404,
        'x',
      );
    }
    return { resources: [{ name: 'clustertrustbundles' }] } as T;
  }
  async list<T>(path: string): Promise<ListOf<T>> {
    this.calls.push(`LIST ${path}`);
    const metadata = { resourceVersion: '9' };
    return { apiVersion: 'x', kind: 'ClusterTrustBundleList', metadata, items: this.bundles as T[] };
  }
  async *watch<T>(_path: string, _query: unknown, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    this.calls.push('WATCH');
    while (!signal.aborted) {
      const event = await new Promise<WatchEvent<ClusterTrustBundle> | undefined>((resolve) => {
        this.tell = resolve;
        signal.addEventListener('abort', () => resolve(undefined), { once: true });
      });
      if (event !== undefined) yield event as WatchEvent<T>;
    }
    this.calls.push('END');
  }
}

describe('the cluster’s bundles', () => {
  const PATH = '/apis/certificates.k8s.io/v1beta1';
  const fixture = () => {
    const server = new Server();
    return {
      server,
      bundles: new TrustBundles({ client: server, clock: new ManualClock(), onFailure: () => undefined }),
    };
  };

  test('are followed from the first need to the last pod, in the version that the server has', async () => {
    const { server, bundles } = fixture();
    const reported = vi.fn();
    bundles.follow('a', reported);
    expect(server.calls).toEqual([]);
    expect(decoded(await bundles.anchors(request({ name: 'plain' })))).toEqual(['P']);
    await bundles.anchors(request({ name: 'plain' }));
    await vi.waitFor(() => expect(server.calls).toContain('WATCH'));
    expect(server.calls).toEqual([
      'GET /apis/certificates.k8s.io/v1',
      `GET ${PATH}`,
      `LIST ${PATH}/clustertrustbundles`,
      'WATCH',
    ]);
    const changed = bundle('plain', '', {}, 'Q');
    server.tell({ type: 'MODIFIED', object: { ...changed, metadata: { ...changed.metadata, resourceVersion: '10' } } });
    await vi.waitFor(() => expect(reported).toHaveBeenCalled());
    expect(decoded(await bundles.anchors(request({ name: 'plain' })))).toEqual(['Q']);
    bundles.release('a');
    await vi.waitFor(() => expect(server.calls.at(-1)).toBe('END'));
  });

  test('that the server does not know are an error, and are asked for again', async () => {
    const { server, bundles } = fixture();
    server.version = undefined;
    await expect(bundles.anchors(request({ name: 'x', optional: true }))).rejects.toThrow(
      'ClusterTrustBundle projection is not supported in static kubelet mode',
    );
    server.version = 'v1beta1';
    expect(await bundles.anchors(request({ name: 'x', optional: true }))).toBe('');
    bundles.close();
  });
});
