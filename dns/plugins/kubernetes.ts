// The plugin `kubernetes`: cluster/lookup.ts, and what an ExternalName leads to, which this server itself resolves.

import { type LookupContext, lookUp, startOfAuthority } from '../cluster/lookup.ts';
import { matchingZone } from '../cluster/query.ts';
import { type Message, parseMessage, Rcode } from '../wire/message.ts';
import { answersOf, type MadeReply, makeMessage, makeQuery, questionBytes, type Resource } from '../wire/records.ts';
import type { Handler, Request, Result } from './plugin.ts';

const NAME = 'kubernetes';

/** A question of this server itself, in the place of the client. */
export type Resolve = (request: Request) => Promise<Result>;

function made(request: Request, reply: MadeReply): Result {
  return { kind: 'reply', by: NAME, message: makeMessage(questionBytes(request.message), reply) };
}

function aliased(request: Request, target: string): Request {
  const message = parseMessage(makeQuery(0, target, request.question.type));
  const { question = request.question } = message;
  return { ...request, message, question, depth: request.depth + 1 };
}

/** Records that cannot be read are left out, and the alias stays. */
function readAnswers(message: Message): readonly Resource[] {
  try {
    return answersOf(message);
  } catch (error) {
    if (error instanceof Error) return [];
    throw error;
  }
}

export function kubernetesPlugin(context: LookupContext, resolve: Resolve, next: Handler): Handler {
  return async (request) => {
    const found = lookUp(request.question, context);
    if (found.kind === 'next') return next(request);
    if (found.kind === 'reply') return made(request, found.reply);
    const resolved = await resolve(aliased(request, found.target));
    const zone = matchingZone(request.question.name, context.settings.zones) ?? '';
    const more = resolved.kind === 'reply' ? readAnswers(resolved.message) : [];
    const reply: MadeReply = {
      rcode: Rcode.NOERROR,
      authoritative: true,
      answers: [...found.records, ...more],
      // An alias that leads nowhere is one without addresses.
      authorities: more.length === 0 ? [startOfAuthority(context, zone)] : [],
      additionals: [],
    };
    return made(request, reply);
  };
}
