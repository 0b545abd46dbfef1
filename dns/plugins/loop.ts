// The plugin `loop`: a question that this server sends to itself, of a name that no other has. Where it comes back more often than it
// was sent, an upstream leads here.

import type { Question } from '../wire/message.ts';
import { Type } from '../wire/message.ts';
import type { Handler } from './plugin.ts';

/** The question itself, and once more for a client that repeats it. */
const ALLOWED = 2;

export interface LoopDetector {
  /** "123.456.zone". */
  readonly name: string;
  readonly plugin: (next: Handler) => Handler;
  /** From now on questions are not counted. */
  off(): void;
  reset(): void;
}

function label(random: () => number): string {
  return String(Math.floor(random() * Number.MAX_SAFE_INTEGER));
}

/** `onLoop`: with words for it. `random`: 0 ≤ x < 1. */
export function loopDetector(zone: string, random: () => number, onLoop: (words: string) => void): LoopDetector {
  const name = [label(random), label(random), ...(zone === '' ? [] : [zone])].join('.');
  let [seen, isOff] = [0, false];
  const isMine = (question: Question): boolean => question.type === Type.HINFO && question.name === name;
  return {
    name,
    plugin: (next) => (request) => {
      if (isOff || !isMine(request.question)) return next(request);
      seen++;
      if (seen > ALLOWED) {
        isOff = true;
        const { address, port } = request.client;
        onLoop(`Loop (${address}:${port}) detected for zone "${zone}.": Query: "HINFO ${name}."`);
      }
      return next(request);
    },
    off: () => {
      isOff = true;
    },
    reset: () => {
      seen = 0;
    },
  };
}
