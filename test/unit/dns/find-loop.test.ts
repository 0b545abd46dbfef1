import { expect, test } from 'vitest';
import { findLoop } from '../../../dns/server/find-loop.ts';
import { parseMessage } from '../../../dns/wire/message.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('the question is asked until there is an answer, each time as a span, and then no more', async () => {
  const clock = new VirtualClock();
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  const questions: unknown[] = [];
  const ends: string[] = [];
  const finding = findLoop(
    { name: '1.2.example', reset: () => undefined, off: () => void ends.push('off') },
    {
      server: 'dns://127.0.0.1:53',
      send: async (query) => {
        questions.push(parseMessage(query).question);
        if (questions.length === 1) throw new Error('refused');
      },
      tracer,
      clock,
      random: () => 0,
      signal: new AbortController().signal,
    },
  );
  await clock.advance(1_000);
  expect(questions).toHaveLength(2);
  const attributes = { upstream: 'dns://127.0.0.1:53', transport: 'udp', question: '1.2.example', type: 'HINFO' };
  expect(spans).toMatchObject([
    { kind: 'dns', name: 'loop check', outcome: 'error', error: 'refused', attributes },
    { kind: 'dns', name: 'loop check', outcome: 'ok', attributes },
  ]);
  expect(ends).toEqual([]);
  await clock.advance(2_000);
  await finding;
  expect(ends).toEqual(['off']);
});
