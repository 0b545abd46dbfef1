import { expect, test } from 'vitest';
import { MAX_DETAIL_BYTES, maskedJson } from '../../../lib/masked-json.ts';

test.each([
  [
    'credentials of a pull',
    { image: { image: 'a' }, auth: { username: 'u', password: 'p' } },
    ['"image":"a"'],
    ['"u"', '"p"'],
  ],
  ['secrets of a CSI call', { volume_id: 'v', secrets: { key: 'hidden' } }, ['"volume_id":"v"'], ['hidden']],
  ['a token', { status: { token: 'ey.hidden' } }, ['status'], ['hidden']],
  ['a Secret', { kind: 'Secret', metadata: { name: 's' }, data: { a: 'hidden' } }, ['"name":"s"'], ['hidden']],
  [
    'Secrets of a list',
    { kind: 'SecretList', items: [{ metadata: { name: 's' }, type: 'Opaque', data: { a: 'hidden' } }] },
    ['"name":"s"'],
    ['hidden'],
  ],
])('%s is masked', (_what, value, shown, hidden) => {
  const text = maskedJson(value);
  for (const each of shown) expect(text).toContain(each);
  for (const each of hidden) expect(text).not.toContain(each);
  expect(text).toContain('<masked>');
});

test('a ConfigMap, and what is empty, is as it is', () => {
  const map = { kind: 'ConfigMap', data: { a: 'b' } };
  expect(maskedJson(map)).toBe(JSON.stringify(map));
  const pull = { auth: null, secrets: {} };
  expect(maskedJson(pull)).toBe(JSON.stringify(pull));
});

test('what is long is cut, and says so', () => {
  const text = maskedJson({ data: 'x'.repeat(2 * MAX_DETAIL_BYTES) });
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_DETAIL_BYTES);
  expect(text).toMatch(/characters more\)$/);
});
