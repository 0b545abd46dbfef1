import { expect, it } from 'vitest';
import { parseObject } from '../../../client/json.ts';

it.each<[string, unknown]>([
  ['{"kind":"PodList","items":null,"metadata":{}}', { kind: 'PodList', items: [], metadata: {} }],
  ['{"endpoints":null,"ports":[{"name":null,"port":80}]}', { ports: [{ port: 80 }] }],
  [
    '{"items":[{"spec":{"template":{"metadata":{"creationTimestamp":null,"labels":{"a":"null"}}}}}]}',
    { items: [{ spec: { template: { metadata: { labels: { a: 'null' } } } } }] },
  ],
  ['{"type":"ADDED","object":{"rules":null}}', { type: 'ADDED', object: {} }],
  ['{"values":[null,0,false,""]}', { values: [null, 0, false, ''] }],
  ['{"metadata":{"name":"a"}}', { metadata: { name: 'a' } }],
])('%s', (text, expected) => {
  expect(parseObject(text)).toEqual(expected);
});

it('what is no JSON is an error', () => {
  expect(() => parseObject('<html>')).toThrow(SyntaxError);
});
