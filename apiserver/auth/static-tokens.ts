// Static tokens: --token-auth-file, a line each: token, user, uid and, quoted, groups. The tokens are kept as digests, so
// that a look-up takes the same time whatever a token begins with. Reads text; the file is main.ts's.

import { createHash } from 'node:crypto';
import { UserError } from '../../lib/errors.ts';
import type { Caller } from './attributes.ts';

/** The fields of a line of CSV (RFC 4180); undefined where a quote does not end. */
function fieldsOf(line: string): string[] | undefined {
  const fields: string[] = [];
  for (let at = 0; at <= line.length; ) {
    if (line[at] !== '"') {
      const comma = line.indexOf(',', at);
      const end = comma < 0 ? line.length : comma;
      fields.push(line.slice(at, end));
      at = end + 1;
      continue;
    }
    let value = '';
    let end = line.indexOf('"', at + 1);
    for (let from = at + 1; ; end = line.indexOf('"', from)) {
      if (end < 0) return undefined;
      value += line.slice(from, end);
      if (line[end + 1] !== '"') break;
      value += '"';
      from = end + 2;
    }
    if (end + 1 < line.length && line[end + 1] !== ',') return undefined;
    fields.push(value);
    at = end + 2;
  }
  return fields;
}

const digest = (token: string): string => createHash('sha256').update(token).digest('base64');

export class StaticTokens {
  readonly #callers: ReadonlyMap<string, Caller>;

  private constructor(callers: ReadonlyMap<string, Caller>) {
    this.#callers = callers;
  }

  /** Throws UserError for a line without the three columns; `path` is for its message. Lines without a token are skipped. */
  static parse(text: string, path: string): StaticTokens {
    const callers = new Map<string, Caller>();
    for (const [index, line] of text.split(/\r?\n/).entries()) {
      if (line === '') continue;
      const fields = fieldsOf(line);
      if (fields === undefined) throw new UserError(`token file '${path}', line ${index + 1}: a quote is not closed`);
      const [token = '', name = '', uid, groups = ''] = fields;
      if (uid === undefined) {
        const columns = 'at least 3 columns (token, user name, user uid)';
        throw new UserError(`token file '${path}' must have ${columns}, found ${fields.length} in line ${index + 1}`);
      }
      if (token === '') continue;
      const named = groups === '' ? [] : groups.split(',');
      callers.set(digest(token), { name, uid, groups: [...named, 'system:authenticated'] });
    }
    return new StaticTokens(callers);
  }

  find(token: string): Caller | undefined {
    return this.#callers.get(digest(token));
  }
}
