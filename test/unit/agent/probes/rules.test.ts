import { describe, expect, it } from 'vitest';
import { requestTarget, resolveContainerPort } from '../../../../agent/model/http-action.ts';
import type { ContainerId } from '../../../../agent/ports/runtime.ts';
import {
  afterResult,
  initialState,
  type ProbeResult,
  type ProbeType,
  probeSettings,
} from '../../../../agent/probes/automaton.ts';
import { outcomeOfResponse } from '../../../../agent/probes/http-runner.ts';
import { type ProbeOutcome, probeEvent, resultOf } from '../../../../agent/probes/outcome.ts';
import { firstRunDelay, nextRunDelay } from '../../../../agent/probes/schedule.ts';
import { probeTarget } from '../../../../agent/probes/target.ts';
import { epochMs, monotonicMs } from '../../../../lib/clock.ts';

/** Verdicts after each of a row of results: `s` success, `f` failure. */
function verdicts(type: ProbeType, row: string, thresholds: { success?: number; failure?: number }, carried = false) {
  const settings = { successThreshold: thresholds.success ?? 1, failureThreshold: thresholds.failure ?? 1 };
  let state = initialState(type, carried);
  const seen = [state.verdict];
  for (const letter of row) {
    const result: ProbeResult = letter === 's' ? 'success' : 'failure';
    state = afterResult(type, settings, state, result);
    seen.push(state.verdict);
  }
  return { seen: seen.map((verdict) => verdict?.[0] ?? '-').join(''), onHold: state.onHold };
}

describe('the verdict of a probe', () => {
  it.each([
    ['readiness begins as a failure', 'readiness', '', {}, 'f', false],
    ['liveness begins as a success', 'liveness', '', {}, 's', false],
    ['startup begins as unknown', 'startup', '', {}, '-', false],
    ['readiness turns with the first success', 'readiness', 's', {}, 'fs', false],
    [
      'readiness waits for successThreshold successes in a row',
      'readiness',
      'ssfsss',
      { success: 3 },
      'ffffffs',
      false,
    ],
    [
      'readiness waits for failureThreshold failures in a row',
      'readiness',
      'sffsfff',
      { failure: 3 },
      'fssssssf',
      false,
    ],
    [
      'liveness fails after failureThreshold failures and asks no more',
      'liveness',
      'ffsfff',
      { failure: 3 },
      'ssssssf',
      true,
    ],
    ['startup success ends the asking', 'startup', 'ffs', { failure: 5 }, '---s', true],
    ['startup failure ends the asking', 'startup', 'fff', { failure: 3 }, '---f', true],
    ['a failure below the threshold leaves a ready container ready', 'readiness', 'sff', { failure: 3 }, 'fsss', false],
  ] as const)('%s', (_name, type, row, thresholds, seen, onHold) => {
    expect(verdicts(type, row, thresholds)).toEqual({ seen, onHold });
  });

  it('carries what was reported before the agent restarted: ready stays ready, started is not asked again', () => {
    expect(verdicts('readiness', 'ff', { failure: 2 }, true)).toEqual({ seen: 'ssf', onHold: false });
    expect(verdicts('startup', '', {}, true)).toEqual({ seen: 's', onHold: true });
  });

  it('has the defaults of the API where a manifest leaves a figure out', () => {
    const defaults = {
      initialDelayMs: 0,
      periodMs: 10_000,
      timeoutMs: 1_000,
      successThreshold: 1,
      failureThreshold: 3,
    };
    expect(probeSettings({})).toEqual(defaults);
    expect(probeSettings({ periodSeconds: 0, timeoutSeconds: 0 })).toEqual(defaults);
  });
});

describe('when a probe runs', () => {
  const base = {
    initialDelayMs: 5_000,
    periodMs: 10_000,
    startedAt: epochMs(100_000),
    agentStartedAt: epochMs(0),
    random: 0.25,
  };
  it.each([
    ['initialDelaySeconds after the start of the container', { now: epochMs(100_000) }, 5_000],
    ['counting what has passed of the delay', { now: epochMs(103_000) }, 2_000],
    ['at once when the delay is over', { now: epochMs(200_000) }, 0],
    ['no later than the delay when the wall clock was set back', { now: epochMs(50_000) }, 5_000],
    [
      'anywhere within one period for a container that ran before the agent',
      { now: epochMs(200_000), agentStartedAt: epochMs(199_000) },
      2_500,
    ],
    [
      'without spreading once the agent has run for a period',
      { now: epochMs(220_000), agentStartedAt: epochMs(199_000) },
      0,
    ],
    [
      'without spreading a container that the agent started',
      { now: epochMs(200_000), agentStartedAt: epochMs(99_000) },
      0,
    ],
  ])('first runs %s', (_name, facts, delay) => {
    expect(firstRunDelay({ ...base, ...facts })).toBe(delay);
  });

  it.each([
    ['at the next point of its grid', 1_000, 1_200, 9_800],
    ['on the grid although it ran late', 11_400, 11_600, 9_400],
    ['at once when it took longer than its period', 1_000, 12_000, 0],
    ['one period later when it ended right on the grid it began on', 11_000, 11_000, 10_000],
  ])('runs again %s', (_name, begun, now, delay) => {
    expect(nextRunDelay(monotonicMs(1_000), 10_000, monotonicMs(begun), monotonicMs(now))).toBe(delay);
  });
});

describe('what a probe asks', () => {
  const container = {
    name: 'web',
    image: 'nginx',
    ports: [{ name: 'http', containerPort: 8080 }],
    env: [{ name: 'FILE', value: '/ok' }],
  };
  const id = 'c1' as ContainerId;
  const target = (probe: object, podIP: string | undefined = '10.0.0.7') => probeTarget(probe, container, id, podIP);

  it('expands variables that have a plain value in the command, and leaves the others as they are', () => {
    const exec = { command: ['cat', '$(FILE)', '$(OTHER)', '$$(FILE)'] };
    expect(target({ exec })).toEqual({
      kind: 'exec',
      containerId: id,
      command: ['cat', '/ok', '$(OTHER)', '$(FILE)'],
    });
  });

  it('takes a port by the name of a container port', () => {
    expect(target({ tcpSocket: { port: 'http' } })).toEqual({ kind: 'tcpSocket', host: '10.0.0.7', port: 8080 });
  });

  it('takes the host of the probe before the pod address', () => {
    expect(target({ tcpSocket: { port: 1, host: 'db' } })).toEqual({ kind: 'tcpSocket', host: 'db', port: 1 });
  });

  it('asks the server as a whole when grpc names no service', () => {
    expect(target({ grpc: { port: 9 } })).toEqual({ kind: 'grpc', host: '10.0.0.7', port: 9, service: '' });
  });

  it('names itself, accepts anything, and sends headers and Host as given', () => {
    const httpHeaders = [
      { name: 'host', value: 'example.org' },
      { name: 'x-a', value: '1' },
      { name: 'X-A', value: '2' },
    ];
    const requested = target({ httpGet: { port: 80, path: '/z', scheme: 'HTTPS', httpHeaders } });
    expect(requested).toEqual({
      kind: 'httpGet',
      request: {
        scheme: 'https',
        host: '10.0.0.7',
        port: 80,
        target: '/z',
        hostHeader: 'example.org',
        headers: new Map([
          ['X-A', ['1', '2']],
          ['User-Agent', ['kube-probe/1.34']],
          ['Accept', ['*/*']],
        ]),
      },
    });
  });

  it('leaves out User-Agent and Accept that are given as empty', () => {
    const httpHeaders = ['User-Agent', 'Accept'].map((name) => ({ name, value: '' }));
    const requested = target({ httpGet: { port: 80, httpHeaders } });
    expect(requested.kind === 'httpGet' ? [...requested.request.headers] : undefined).toEqual([]);
  });

  it.each([
    ['a name that no port has', 'web', 'strconv.Atoi: parsing "web": invalid syntax'],
    ['port 0', 0, 'invalid port number: 0'],
    ['a number past the last port', '70000', 'invalid port number: 70000'],
  ])('refuses %s', (_name, port, message) => {
    expect(() => resolveContainerPort(port, container)).toThrow(message);
  });

  it('refuses a handler that is none', () => {
    expect(() => target({})).toThrow('missing probe handler for web');
  });

  it.each([
    ['', '/'],
    ['healthz', '/healthz'],
    ['/a?b=c d', '/a?b=c%20d'],
    ['/a#fragment', '/a'],
    ['/ä b', '/%C3%A4%20b'],
    ['http://other/x?y', '/x?y'],
    ['/%zz?q', '/%25zz%3Fq'],
    ['/../a', '/../a'],
  ])('asks for the path %j as %j', (path, wire) => {
    expect(requestTarget(path)).toBe(wire);
  });
});

describe('the event of a run', () => {
  const words = (outcome: ProbeOutcome): string | undefined => {
    const event = probeEvent('liveness', outcome);
    return event === undefined ? undefined : `${event.reason}: ${event.message}`;
  };
  it.each([
    ['a success is not worth an event', outcomeOfResponse(204, 'fine'), undefined, 'success'],
    [
      'a bad status is reported without the body',
      outcomeOfResponse(500, 'secret'),
      'Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500',
      'failure',
    ],
    [
      'an informational status is a failure',
      outcomeOfResponse(199, ''),
      'Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 199',
      'failure',
    ],
    [
      'a redirect to elsewhere is a success with a warning',
      outcomeOfResponse(302, 'gone'),
      'ProbeWarning: Liveness probe warning: Probe terminated redirects, Response body: gone',
      'success',
    ],
    [
      'a run with an error does not count',
      { kind: 'error', state: 'unknown', message: 'rpc error: code = Unknown desc = boom' },
      'Unhealthy: Liveness probe errored and resulted in unknown state: rpc error: code = Unknown desc = boom',
      undefined,
    ],
  ] as const)('%s', (_name, outcome, event, result) => {
    expect(words(outcome)).toBe(event);
    expect(resultOf(outcome)).toBe(result);
  });
});
