import { describe, expect, it } from 'vitest';
import { requestHeaders, responseHeaders } from '../../../../apiserver/proxy/backend.ts';
import { rewriteHtml, rewriteUrl } from '../../../../apiserver/proxy/rewrite.ts';

const prefix = '/api/v1/namespaces/ns/pods/web/proxy';
const rewriting = { backend: '10.0.0.5:80', host: 'localhost:8001', prefix };

describe('a reference', () => {
  const cases: readonly [string, string][] = [
    ['/a', `${prefix}/a`],
    ['/', `${prefix}/`],
    ['/a/?q=1#x', `${prefix}/a/?q=1#x`],
    ['http://10.0.0.5:80/a', `${prefix}/a`],
    ['http://localhost:8001/a', `http://localhost:8001${prefix}/a`],
    [`${prefix}/a`, `${prefix}/a`],
    [`http://localhost:8001${prefix}/a`, `http://localhost:8001${prefix}/a`],
    ['http://example.com/a', 'http://example.com/a'],
    ['//example.com/a', '//example.com/a'],
    ['a/b', 'a/b'],
    ['?q=1', '?q=1'],
    ['', ''],
    ['mailto:me@example.com', 'mailto:me@example.com'],
  ];
  for (const [from, to] of cases) it(`"${from}"`, () => expect(rewriteUrl(from, rewriting)).toBe(to));
});

describe('a page', () => {
  const cases: readonly [string, string, string][] = [
    ['its links', '<p><a class="x" HREF="/a">a</a>', `<p><a class="x" HREF="${prefix}/a">a</a>`],
    ['in other quotes', `<img src='/a.png'><img src=/b.png>`, `<img src='${prefix}/a.png'><img src=${prefix}/b.png>`],
    ['only those with a URL', '<a title="/a" href="b">', '<a title="/a" href="b">'],
    ['no other tags', '<p href="/a">', '<p href="/a">'],
    ['no comments', '<!-- <a href="/a"> --><a href="/b">', `<!-- <a href="/a"> --><a href="${prefix}/b">`],
    [
      'no scripts',
      '<script>"<a href=\'/a\'>"</script><a href="/b">',
      `<script>"<a href='/a'>"</script><a href="${prefix}/b">`,
    ],
    ['the reference of a script', '<script src="/a.js"></script>', `<script src="${prefix}/a.js"></script>`],
    ['with > in quotes', '<a title=">" href="/a">', `<a title=">" href="${prefix}/a">`],
    ['no text', 'a < b, href="/a" > c', 'a < b, href="/a" > c'],
    ['what breaks off', '<a href="/a', '<a href="/a'],
  ];
  for (const [what, from, to] of cases) it(what, () => expect(rewriteHtml(from, rewriting)).toBe(to));
});

describe('headers', () => {
  it('of the request go on without credentials and those of this hop', () => {
    const headers = {
      ...{ host: 'api:6443', authorization: 'Bearer x', connection: 'close, X-Hop', 'x-hop': '1', te: 'trailers' },
      ...{ 'impersonate-user': 'boss', 'x-forwarded-for': '192.0.2.1', accept: 'image/png', cookie: 'a=b' },
    };
    expect(requestHeaders({ headers }, '192.0.2.2', `${prefix}/a`)).toEqual({
      host: 'api:6443',
      accept: 'image/png',
      cookie: 'a=b',
      'x-forwarded-for': '192.0.2.1, 192.0.2.2',
      'x-forwarded-uri': `${prefix}/a`,
    });
  });
  it('of the response come back without those for browsers, redirects through the proxy', () => {
    const headers = {
      ...{ location: '/b', connection: 'close', 'access-control-allow-origin': '*', 'content-length': '3', 'x-a': '1' },
      'set-cookie': ['a=b', 'c=d'],
    };
    expect(responseHeaders(headers, rewriting)).toEqual({
      location: `${prefix}/b`,
      'content-length': '3',
      'x-a': '1',
      'set-cookie': ['a=b', 'c=d'],
    });
  });
});
