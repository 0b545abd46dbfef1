import { describe, expect, it } from 'vitest';
import { lines } from '../../../client/lines.ts';
import { queryString, requestInfo, resourcePath } from '../../../client/paths.ts';

describe('paths', () => {
  it.each<[string, string, { namespace?: string; name?: string; subresource?: string }, string]>([
    ['v1', 'nodes', {}, '/api/v1/nodes'],
    ['v1', 'pods', { namespace: 'a', name: 'p', subresource: 'status' }, '/api/v1/namespaces/a/pods/p/status'],
    ['v1', 'namespaces', { name: 'a', subresource: 'finalize' }, '/api/v1/namespaces/a/finalize'],
    ['apps/v1', 'deployments', { namespace: 'a' }, '/apis/apps/v1/namespaces/a/deployments'],
    ['v1', 'pods', { namespace: '' }, '/api/v1/pods'],
  ])('%s %s is built', (apiVersion, plural, at, path) => {
    expect(resourcePath(apiVersion, plural, at)).toBe(path);
  });

  it.each([
    ['/api/v1/pods', { resource: 'pods', collection: true }],
    ['/api/v1/namespaces/a/pods/p/status', { resource: 'pods/status', namespace: 'a', name: 'p', collection: false }],
    ['/api/v1/namespaces', { resource: 'namespaces', collection: true }],
    ['/api/v1/namespaces/a', { resource: 'namespaces', namespace: 'a', name: 'a', collection: false }],
    [
      '/api/v1/namespaces/a/finalize',
      { resource: 'namespaces/finalize', namespace: 'a', name: 'a', collection: false },
    ],
    [
      '/apis/coordination.k8s.io/v1/namespaces/l/leases/n',
      { resource: 'leases', namespace: 'l', name: 'n', collection: false },
    ],
    ['/healthz', { resource: '/healthz', collection: false }],
    ['/apis', { resource: '/apis', collection: false }],
  ])('%s is read back', (path, info) => {
    expect(requestInfo(path)).toEqual(info);
  });

  it('writes queries with lists repeated and gaps left out', () => {
    expect(queryString({ a: 'x y', b: undefined, c: ['1', '2'], d: false })).toBe('?a=x+y&c=1&c=2&d=false');
    expect(queryString({})).toBe('');
  });
});

describe('lines', () => {
  async function split(...chunks: string[]): Promise<string[]> {
    async function* source(): AsyncGenerator<Buffer> {
      for (const chunk of chunks) yield Buffer.from(chunk, 'latin1');
    }
    const result: string[] = [];
    for await (const line of lines(source())) result.push(line);
    return result;
  }
  it.each<[string, string[], string[]]>([
    ['in one chunk', ['a\nb\n'], ['a', 'b']],
    ['across chunks', ['a', 'b\nc', '\n', 'd\n'], ['ab', 'c', 'd']],
    ['without a last newline', ['a\nb'], ['a', 'b']],
    ['empty ones left out', ['\n\na\n\n'], ['a']],
    ['cut inside a character', ['\xc3', '\xa4\n'], ['ä']],
  ])('are found %s', async (_what, chunks, expected) => {
    expect(await split(...chunks)).toEqual(expected);
  });
});
