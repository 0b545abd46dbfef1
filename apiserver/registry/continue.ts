// Continue tokens of paged lists. They are signed: the server continues only from a place that it has issued, in the
// list that the token was issued for. Knows no objects.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { badRequest } from '../errors.ts';
import { isObject } from '../patch/json-value.ts';

export interface ContinueToken {
  /** -1 goes on with what is now, when the first page's revision is gone. */
  readonly revision: number;
  readonly after: { readonly namespace: string; readonly name: string };
}

const INVALID = 'continue key is not valid';

export class ContinueTokens {
  readonly #key: string | Uint8Array;

  /** `key` makes the signatures; with the same one, tokens hold over restarts. */
  constructor(key: string | Uint8Array) {
    this.#key = key;
  }

  /** `list` is what the token is for: resource and namespace. */
  encode(list: string, { revision, after }: ContinueToken): string {
    const json = { v: 'meta.k8s.io/v1', rv: revision, start: `${after.namespace}/${after.name}` };
    const content = Buffer.from(JSON.stringify(json)).toString('base64url');
    return `${content}.${this.#sign(list, content).toString('base64url')}`;
  }

  /** Throws 400 for a token that this server did not make, or not for this list. Nothing of it is repeated. */
  decode(list: string, text: string): ContinueToken {
    const dot = text.indexOf('.');
    const content = text.slice(0, Math.max(0, dot));
    const signature = Buffer.from(text.slice(dot + 1), 'base64url');
    const expected = this.#sign(list, content);
    if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) throw badRequest(INVALID);
    const value: unknown = JSON.parse(Buffer.from(content, 'base64url').toString('utf8'));
    if (!isObject(value) || typeof value['rv'] !== 'number' || typeof value['start'] !== 'string') {
      throw badRequest(INVALID);
    }
    const slash = value['start'].indexOf('/');
    const after = { namespace: value['start'].slice(0, slash), name: value['start'].slice(slash + 1) };
    return { revision: value['rv'], after };
  }

  #sign(list: string, content: string): Buffer {
    return createHmac('sha256', this.#key).update(`continue\0${list}\0${content}`).digest();
  }
}
