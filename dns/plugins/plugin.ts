// What the plugins of a server block have in common: a question goes from one to the next until one of them answers. Types, and
// the end of the chain.

import type { Transport } from '../wire/finish.ts';
import { type Message, type Question, Rcode } from '../wire/message.ts';

export interface Request {
  /** As the client has sent it. */
  readonly message: Message;
  readonly question: Question;
  readonly transport: Transport;
  readonly client: { readonly address: string; readonly port: number };
  /** How many questions of this server itself led to this one. */
  readonly depth: number;
}

export type Result =
  /** `by`: the plugin. */
  | { readonly kind: 'reply'; readonly by: string; readonly message: Message }
  /** An answer without records; `error` is logged by the plugin `errors`. */
  | { readonly kind: 'failure'; readonly by: string; readonly rcode: number; readonly error?: string };

export type Handler = (request: Request) => Promise<Result>;

/** Where no plugin answers. */
export const noPlugin: Handler = () =>
  Promise.resolve({ kind: 'failure', by: '', rcode: Rcode.SERVFAIL, error: 'no next plugin found' });
