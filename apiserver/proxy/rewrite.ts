// What a page or a redirect behind pods/proxy and services/proxy refers to, changed so that it leads through the proxy again:
// absolute paths get the proxy's path before them. Pure.

import { posix } from 'node:path';

export interface Rewriting {
  /** "10.0.0.5:80": where the response comes from. */
  readonly backend: string;
  /** The Host header of the request. */
  readonly host: string;
  /** "/api/v1/namespaces/default/pods/web/proxy" */
  readonly prefix: string;
}

const URL_PARTS = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(.*)$/is;

/** A reference of the backend as a client of the proxy has to follow it; references to other hosts and relative ones stay. */
export function rewriteUrl(target: string, { backend, host, prefix }: Rewriting): string {
  const [, scheme = '', authority = '', path = '', rest = ''] = URL_PARTS.exec(target) ?? [];
  const isElsewhere = authority !== '' && authority !== backend && authority !== host;
  if (isElsewhere || !path.startsWith('/')) return target;
  const origin = authority !== '' && authority === host ? `${scheme === '' ? '' : `${scheme}:`}//${authority}` : '';
  if (path.startsWith(prefix)) return `${origin}${path}${rest}`;
  const joined = posix.join(prefix, path);
  const slash = path.endsWith('/') && !joined.endsWith('/') ? '/' : '';
  return `${origin}${joined}${slash}${rest}`;
}

/** The attributes of HTML 4 and 5 that have a URL. */
const ATTRIBUTES = new Map(
  Object.entries({
    a: ['href'],
    applet: ['codebase'],
    area: ['href'],
    audio: ['src'],
    base: ['href'],
    blockquote: ['cite'],
    body: ['background'],
    button: ['formaction'],
    command: ['icon'],
    del: ['cite'],
    embed: ['src'],
    form: ['action'],
    frame: ['longdesc', 'src'],
    head: ['profile'],
    html: ['manifest'],
    iframe: ['longdesc', 'src'],
    img: ['longdesc', 'src', 'usemap'],
    input: ['src', 'usemap', 'formaction'],
    ins: ['cite'],
    link: ['href'],
    object: ['classid', 'codebase', 'data', 'usemap'],
    q: ['cite'],
    script: ['src'],
    source: ['src'],
    video: ['poster', 'src'],
  }),
);

/** Begins at the start of a name only, so that the time is linear in the length. */
const ATTRIBUTE = /(?<![^\s"'>/=])([^\s"'>/=]+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)/g;
/** Their content is text up to the end tag. */
const RAW = new Set(['script', 'style', 'textarea', 'title']);

function rewriteAttributes(attributes: string, names: readonly string[], rewriting: Rewriting): string {
  return attributes.replace(ATTRIBUTE, (whole: string, name: string, equals: string, value: string) => {
    if (!names.includes(name.toLowerCase())) return whole;
    const quote = value.startsWith('"') || value.startsWith("'") ? value.charAt(0) : '';
    const url = quote === '' ? value : value.slice(1, -1);
    return `${name}${equals}${quote}${rewriteUrl(url, rewriting)}${quote}`;
  });
}

/** The index after the ">" that ends the tag, quotes observed; the end of the page where there is none. */
function endOfTag(page: string, from: number): number {
  for (let at = from; at < page.length; at++) {
    const char = page[at];
    if (char === '>') return at + 1;
    if (char !== '"' && char !== "'") continue;
    at = page.indexOf(char, at + 1);
    if (at < 0) break;
  }
  return page.length;
}

const NAME = /[a-z][a-z0-9]*/iy;

/** A page with its references rewritten, in one pass. */
export function rewriteHtml(page: string, rewriting: Rewriting): string {
  const lower = page.toLowerCase();
  let result = '';
  let done = 0;
  for (let open = page.indexOf('<'); open >= 0; open = page.indexOf('<', open)) {
    if (page.startsWith('<!--', open)) {
      const end = page.indexOf('-->', open + 4);
      if (end < 0) break;
      open = end;
      continue;
    }
    NAME.lastIndex = open + 1;
    const [tag] = NAME.exec(page) ?? [''];
    open += 1 + tag.length;
    if (tag === '') continue;
    const end = endOfTag(page, open);
    const name = tag.toLowerCase();
    const names = ATTRIBUTES.get(name);
    if (names !== undefined) {
      result += page.slice(done, open) + rewriteAttributes(page.slice(open, end), names, rewriting);
      done = end;
    }
    open = end;
    if (!RAW.has(name)) continue;
    open = lower.indexOf(`</${name}`, end);
    if (open < 0) break;
  }
  return result + page.slice(done);
}
