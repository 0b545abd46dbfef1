import { describe, expect, it } from 'vitest';
import { ApiError, UnreachableError } from '../../../client/errors.ts';
import { EventCorrelator, type OutgoingEvent } from '../../../client/event-correlator.ts';
import { Recorder } from '../../../client/recorder.ts';
import { epochMs } from '../../../lib/clock.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

function outgoing(message: string, overrides: Partial<OutgoingEvent> = {}): OutgoingEvent {
  return {
    metadata: { name: `p.${message}`, namespace: 'demo' },
    involvedObject: { kind: 'Pod', namespace: 'demo', name: 'p', uid: 'u' },
    reason: 'BackOff',
    message,
    type: 'Warning',
    source: { component: 'kubelet', host: 'n' },
    count: 1,
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    ...overrides,
  };
}

describe('EventCorrelator', () => {
  it('counts equal events on the first one', () => {
    const correlator = new EventCorrelator();
    expect(correlator.correlate(outgoing('a'), epochMs(0))).toMatchObject({ kind: 'create' });
    const later = outgoing('a', {
      metadata: { name: 'p.other', namespace: 'demo' },
      lastTimestamp: '2026-01-01T00:05:00Z',
    });
    expect(correlator.correlate(later, epochMs(1000))).toMatchObject({
      kind: 'patch',
      event: { metadata: { name: 'p.a' }, count: 2, firstTimestamp: '2026-01-01T00:00:00Z' },
      patch: { count: 2, lastTimestamp: '2026-01-01T00:05:00Z' },
    });
  });

  it.each<[string, Partial<OutgoingEvent>]>([
    ['another reason', { reason: 'Killing' }],
    ['another type', { type: 'Normal' }],
    [
      'another container',
      { involvedObject: { kind: 'Pod', namespace: 'demo', name: 'p', uid: 'u', fieldPath: 'spec.containers{b}' } },
    ],
    ['another pod', { involvedObject: { kind: 'Pod', namespace: 'demo', name: 'q', uid: 'v' } }],
  ])('keeps %s apart', (_what, overrides) => {
    const correlator = new EventCorrelator();
    correlator.correlate(outgoing('a'), epochMs(0));
    expect(correlator.correlate(outgoing('a', overrides), epochMs(0)).kind).toBe('create');
  });

  it('folds the tenth different message within ten minutes, and all that follow, into one', () => {
    const correlator = new EventCorrelator();
    const results = Array.from({ length: 12 }, (_, i) => correlator.correlate(outgoing(`m${i}`), epochMs(i * 1000)));
    expect(results.map(({ kind }) => kind)).toEqual([...Array(10).fill('create'), 'patch', 'patch']);
    expect(results[9]).toMatchObject({ event: { message: '(combined from similar events): m9' } });
    expect(results[11]).toMatchObject({
      event: { metadata: { name: 'p.m9' } },
      patch: { count: 3, message: '(combined from similar events): m11' },
    });
  });

  it('starts over when more than ten minutes lie between', () => {
    const correlator = new EventCorrelator();
    for (let i = 0; i < 9; i++) correlator.correlate(outgoing(`m${i}`), epochMs(0));
    expect(correlator.correlate(outgoing('later'), epochMs(600_001))).toMatchObject({ event: { message: 'later' } });
  });

  it('lets 25 events of one object through at once, then one every five minutes', () => {
    const correlator = new EventCorrelator();
    const kinds = (count: number, now: number): number =>
      Array.from({ length: count }, () => correlator.correlate(outgoing('a'), epochMs(now))).filter(
        ({ kind }) => kind !== 'drop',
      ).length;
    expect(kinds(40, 0)).toBe(25);
    expect(kinds(5, 299_000)).toBe(0);
    expect(kinds(5, 301_000)).toBe(1);
    // What was dropped has been counted all the same.
    expect(correlator.correlate(outgoing('a'), epochMs(3_000_000))).toMatchObject({ patch: { count: 51 } });
    // Another object has its own.
    const other = outgoing('a', { involvedObject: { kind: 'Pod', name: 'q', uid: 'v' } });
    expect(correlator.correlate(other, epochMs(0)).kind).toBe('create');
  });
});

function notFound(): ApiError {
  return new ApiError({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound' }, 404, 'x');
}

interface Sent {
  readonly verb: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
}

function nameOf(request: Sent | undefined): unknown {
  const metadata = request?.body['metadata'];
  return typeof metadata === 'object' && metadata !== null && 'name' in metadata ? metadata.name : undefined;
}

function start(delayMs = 0) {
  const clock = new VirtualClock();
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  const sent: Sent[] = [];
  const failures: unknown[] = [];
  const dropped: string[] = [];
  const answer = async <T>(verb: string, path: string, body: unknown): Promise<T> =>
    await tracer.span('api', verb, {}, () => {
      sent.push({ verb, path, body: body as Record<string, unknown> });
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return body as T;
    });
  const recorder = new Recorder({
    client: {
      create: (path, body) => answer('create', path, body),
      patch: (path, body) => answer('patch', path, body),
    },
    clock,
    tracer,
    component: 'kubelet',
    host: 'node-1',
    random: () => 0.5,
    delayMs,
    onDropped: (what) => dropped.push(what),
  });
  return { clock, tracer, spans, sent, failures, dropped, recorder };
}
const pod = {
  metadata: { name: 'p', namespace: 'demo', uid: 'u', resourceVersion: '7' },
  fieldPath: 'spec.containers{web}',
};

describe('Recorder', () => {
  it('creates a core/v1 Event in the namespace of its object', async () => {
    const { recorder, sent } = start();
    recorder.event(pod, 'Normal', 'Pulled', 'Image is there');
    await recorder.flush();
    expect(sent).toMatchObject([
      {
        verb: 'create',
        path: '/api/v1/namespaces/demo/events',
        body: {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { namespace: 'demo' },
          involvedObject: {
            kind: 'Pod',
            apiVersion: 'v1',
            name: 'p',
            namespace: 'demo',
            uid: 'u',
            resourceVersion: '7',
            fieldPath: 'spec.containers{web}',
          },
          reason: 'Pulled',
          message: 'Image is there',
          type: 'Normal',
          source: { component: 'kubelet', host: 'node-1' },
          reportingComponent: 'kubelet',
          reportingInstance: 'node-1',
          count: 1,
          firstTimestamp: '2026-01-01T00:00:00Z',
          lastTimestamp: '2026-01-01T00:00:00Z',
        },
      },
    ]);
  });

  it('puts events about cluster-scoped objects into "default"', async () => {
    const { recorder, sent } = start();
    recorder.event({ kind: 'Node', metadata: { name: 'n', uid: 'n' } }, 'Normal', 'NodeReady', 'ready');
    await recorder.flush();
    expect(sent[0]).toMatchObject({
      path: '/api/v1/namespaces/default/events',
      body: { metadata: { namespace: 'default' } },
    });
    expect(sent[0]?.body['involvedObject']).not.toHaveProperty('namespace');
  });

  it('patches the count of a repeat, and creates the event anew when the server has forgotten it', async () => {
    const { recorder, sent, failures, clock } = start();
    recorder.event(pod, 'Warning', 'BackOff', 'again');
    await recorder.flush();
    const name = nameOf(sent[0]);
    await clock.advance(60_000);
    recorder.event(pod, 'Warning', 'BackOff', 'again');
    await recorder.flush();
    expect(sent[1]).toMatchObject({
      verb: 'patch',
      path: `/api/v1/namespaces/demo/events/${name}`,
      body: { count: 2, lastTimestamp: '2026-01-01T00:01:00Z' },
    });
    failures.push(notFound());
    recorder.event(pod, 'Warning', 'BackOff', 'again');
    await recorder.flush();
    expect(sent.slice(2).map(({ verb }) => verb)).toEqual(['patch', 'create']);
    expect(sent[3]).toMatchObject({ body: { count: 3, metadata: { name } } });
  });

  it('gives events of one moment different names', async () => {
    const { recorder, sent } = start();
    for (const reason of ['Created', 'Started']) recorder.event(pod, 'Normal', reason, 'x');
    await recorder.flush();
    const names = sent.map(nameOf);
    expect(new Set(names).size).toBe(2);
  });

  it('waits for a server that is away, first shortly, then 10 s, and sends in order', async () => {
    const { recorder, sent, failures, clock } = start();
    failures.push(...Array.from({ length: 2 }, () => new UnreachableError('refused', 'ECONNREFUSED')));
    recorder.event(pod, 'Normal', 'One', 'x');
    recorder.event(pod, 'Normal', 'Two', 'x');
    await settle();
    expect(sent.length).toBe(1);
    await clock.advance(5000);
    expect(sent.length).toBe(2);
    await clock.advance(10_000);
    await recorder.flush();
    expect(sent.map(({ body }) => body['reason'])).toEqual(['One', 'One', 'One', 'Two']);
  });

  it('gives an event up after 12 tries, or at once when the server refuses it, and says so', async () => {
    const { recorder, sent, failures, clock, dropped } = start();
    failures.push(...Array.from({ length: 12 }, () => new UnreachableError('refused', 'ECONNREFUSED')));
    failures.push(new ApiError({ kind: 'Status', apiVersion: 'v1', status: 'Failure' }, 403, 'x'));
    recorder.event(pod, 'Normal', 'One', 'lost');
    recorder.event(pod, 'Normal', 'Two', 'forbidden');
    await clock.advance(200_000);
    await recorder.flush();
    expect(sent.length).toBe(13);
    expect(dropped).toEqual(['One about Pod demo/p: lost', 'Two about Pod demo/p: forbidden']);
  });

  it('never holds more than 1000 events, and never throws', async () => {
    const { recorder, dropped, failures } = start();
    failures.push(new UnreachableError('refused', 'ECONNREFUSED'));
    for (let i = 0; i < 1005; i++) recorder.event(pod, 'Normal', 'Many', `m${i}`);
    expect(dropped.length).toBe(4);
    recorder.close();
    await recorder.flush();
    recorder.event(pod, 'Normal', 'Late', 'x');
  });

  it("sends each event in its own pod's trace, whichever call started the sender", async () => {
    const { recorder, tracer, spans } = start();
    const about = (name: string) => ({ pod: { namespace: 'demo', name, uid: name }, cause: `cause of ${name}` });
    await tracer.span('worker', 'sync', {}, () => {
      tracer.within(about('a'), () => recorder.event(pod, 'Normal', 'One', 'x'));
      tracer.within(about('b'), () => recorder.event(pod, 'Normal', 'Two', 'x'));
    });
    recorder.event(pod, 'Normal', 'Three', 'x');
    await recorder.flush();
    const sends = spans.filter(({ kind }) => kind === 'api');
    expect(sends.map(({ pod: of, cause, parent }) => [of?.name, cause, parent])).toEqual([
      ['a', 'cause of a', 1],
      ['b', 'cause of b', 1],
      [undefined, undefined, undefined],
    ]);
  });
});

describe('Recorder that waits for quiet', () => {
  const noise = (recorder: Recorder, number: number): void => recorder.event(pod, 'Normal', `R${number}`, 'm');

  it('sends nothing until no event has come for the delay', async () => {
    const { recorder, sent, clock } = start(100);
    noise(recorder, 1);
    await clock.advance(90);
    noise(recorder, 2);
    await clock.advance(99);
    expect(sent).toHaveLength(0);
    await clock.advance(1);
    expect(sent.map(({ body }) => body['reason'])).toEqual(['R1', 'R2']);
  });

  it('waits ten times the delay at most', async () => {
    const { recorder, sent, clock } = start(100);
    for (let number = 0; number < 11; number++) {
      noise(recorder, number);
      expect(sent).toHaveLength(0);
      await clock.advance(99);
    }
    expect(sent.length).toBeGreaterThan(0);
  });

  it('waits for quiet again where events come while others are sent', async () => {
    const { recorder, sent, clock, tracer } = start(100);
    noise(recorder, 1);
    noise(recorder, 2);
    tracer.subscribe(() => {
      if (sent.length === 1) noise(recorder, 3);
    });
    await clock.advance(100);
    await clock.advance(99);
    expect(sent.map(({ body }) => body['reason'])).toEqual(['R1']);
    await clock.advance(1);
    expect(sent.map(({ body }) => body['reason'])).toEqual(['R1', 'R2', 'R3']);
  });

  it('sends each event when it has waited ten times the delay, while others keep coming', async () => {
    const { recorder, sent, clock } = start(100);
    for (let number = 0; number < 21; number++) {
      noise(recorder, number);
      await clock.advance(50);
    }
    // 1050 ms: those of the first 50 ms are due.
    expect(sent.map(({ body }) => body['reason'])).toEqual(['R0', 'R1']);
  });

  it('waits for nothing when many events are in the queue, so that none is dropped', async () => {
    const { recorder, sent } = start(100);
    for (let number = 0; number < 501; number++) noise(recorder, number);
    await settle();
    expect(sent.map(({ body }) => body['reason'])).toEqual(['R0']);
  });

  it('sends at once when it is flushed, and never after it is closed', async () => {
    const { recorder, sent, clock } = start(100);
    noise(recorder, 1);
    await recorder.flush();
    expect(sent).toHaveLength(1);
    noise(recorder, 2);
    recorder.close();
    await clock.advance(1_000);
    expect(sent).toHaveLength(1);
  });
});
