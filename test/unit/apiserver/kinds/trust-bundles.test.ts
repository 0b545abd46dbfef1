import { beforeAll, describe, expect, test } from 'vitest';
import { generateKeyPair, issueCertificate } from '../../../../apiserver/pki/keys.ts';
import { plusMs } from '../../../../lib/clock.ts';
import { create, lines, NOW, row, update } from './support.ts';

const kind = row('clustertrustbundles', 'certificates.k8s.io');
const certificate = (commonName: string, usage: 'ca' | 'server') =>
  issueCertificate({ commonName, usage, notBefore: NOW, notAfter: plusMs(NOW, 1e9) }, generateKeyPair());

let ca = '';
let other = '';
let leaf = '';
beforeAll(async () => {
  [ca, other, leaf] = await Promise.all([certificate('a', 'ca'), certificate('b', 'ca'), certificate('c', 'server')]);
});
const problems = (name: string, spec: object) => lines(create(kind, { metadata: { name }, spec }).errors);

describe('a ClusterTrustBundle', () => {
  test('holds one or more authorities, with words between them, for a signer or for none', () => {
    expect(problems('plain', { trustBundle: ca })).toEqual([]);
    expect(problems('plain', { trustBundle: `ours:\n${ca}\ntheirs:\n${other}` })).toEqual([]);
    expect(problems('a.io:s:v1', { signerName: 'a.io/s', trustBundle: ca })).toEqual([]);
  });

  test.each<[string, string, () => object, string]>([
    [
      'no bundle',
      'x',
      () => ({}),
      'spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided',
    ],
    ['nothing in it', 'x', () => ({ trustBundle: 'hello' }), 'at least one trust anchor must be provided'],
    ['a key', 'x', () => ({ trustBundle: generateKeyPair().privateKey }), 'entry 0 has bad block type: PRIVATE KEY'],
    ['no certificate', 'x', () => ({ trustBundle: pem('AAAA') }), 'entry 0 does not parse as X.509'],
    ['headers', 'x', () => ({ trustBundle: pem(`A: b\n\n${ca}`) }), 'entry 0 has PEM block headers'],
    ['no authority', 'x', () => ({ trustBundle: ca + leaf }), 'entry 1 does not have CA bit set'],
    ['one twice', 'x', () => ({ trustBundle: ca + other + ca }), 'duplicate trust anchor (indices [0 2])'],
    ['a colon without a signer', 'a:b', () => ({ trustBundle: ca }), 'must not have ":" in its name'],
    [
      'another signer’s name',
      'b.io:s:v1',
      () => ({ signerName: 'a.io/s', trustBundle: ca }),
      'ClusterTrustBundle for signerName a.io/s must be named with prefix a.io:s:',
    ],
    ['a signer that is none', 'a:x', () => ({ signerName: 'a', trustBundle: ca }), 'fully qualified domain and path'],
  ])('with %s is refused', (_, name, spec, message) => {
    const found = problems(name, spec());
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(message);
  });

  test('keeps its signer, and may have other anchors', () => {
    const { object } = create(kind, {
      metadata: { name: 'a.io:s:v1', uid: 'u', resourceVersion: '1' },
      spec: { signerName: 'a.io/s', trustBundle: ca },
    });
    const changed = (spec: object) => lines(update(kind, object, (draft) => Object.assign(draft, { spec })).errors);
    expect(changed({ signerName: 'a.io/s', trustBundle: other })).toEqual([]);
    expect(changed({ signerName: 'a.io/t', trustBundle: ca })[0]).toContain('spec.signerName');
  });

  test('can be selected by its signer, and is printed with it', () => {
    const { object } = create(kind, {
      metadata: { name: 'a.io:s:v1' },
      spec: { signerName: 'a.io/s', trustBundle: ca },
    });
    expect(kind.strategy.selectableFields?.['spec.signerName']?.(object)).toBe('a.io/s');
    expect(kind.strategy.table?.row(object, NOW).slice(0, 2)).toEqual(['a.io:s:v1', 'a.io/s']);
  });
});

function pem(body: string): string {
  return `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
}
