import { expect, it } from 'vitest';
import { answerHealth, type HealthCheck, isHealthPath } from '../../../lib/health-checks.ts';
import { HealthSlis } from '../../../lib/health-slis.ts';

const good: HealthCheck = { name: 'ping', check: () => undefined };
const bad: HealthCheck = { name: 'etcd', check: () => Promise.reject(new Error('no leader')) };
const late: HealthCheck = { name: 'shutdown', readinessOnly: true, check: () => undefined };

const CASES: readonly [string, readonly HealthCheck[], number, string][] = [
  ['/livez', [good, late], 200, 'ok'],
  ['/livez?verbose', [good, late], 200, '[+]ping ok\nlivez check passed\n'],
  ['/readyz?verbose', [good, late], 200, '[+]ping ok\n[+]shutdown ok\nreadyz check passed\n'],
  ['/healthz', [good, bad], 500, '[+]ping ok\n[-]etcd failed: reason withheld\nhealthz check failed\n'],
  ['/readyz?exclude=etcd', [good, bad], 200, 'ok'],
  ['/readyz?verbose&exclude=etcd', [good, bad], 200, '[+]ping ok\n[+]etcd excluded: ok\nreadyz check passed\n'],
  [
    '/livez?verbose&exclude=none&exclude=shutdown',
    [good, late],
    200,
    '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "none","shutdown"\nlivez check passed\n',
  ],
  ['/livez/ping', [good, bad], 200, 'ok'],
  ['/livez/etcd', [good, bad], 500, 'internal server error: no leader\n'],
  ['/readyz/shutdown', [late], 200, 'ok'],
];

it.each(CASES)('%s', async (url, checks, code, body) => {
  const { pathname, searchParams } = new URL(url, 'http://x');
  expect(isHealthPath(pathname)).toBe(true);
  expect(await answerHealth(pathname, searchParams, checks)).toMatchObject({ code, body });
});

it('a path of a check that there is none of, or not for this path, is not found', async () => {
  expect(await answerHealth('/livez/none', new URLSearchParams(), [good])).toBeUndefined();
  expect(await answerHealth('/livez/shutdown', new URLSearchParams(), [late])).toBeUndefined();
  expect(isHealthPath('/livezz')).toBe(false);
});

it('a failure is for the log with its reason', async () => {
  expect((await answerHealth('/readyz', new URLSearchParams(), [bad]))?.failures).toEqual(['etcd: no leader']);
});

it('what came of the checks of whole paths is on /metrics/slis; those that are excluded or called alone are not', async () => {
  const slis = new HealthSlis();
  let leader = false;
  const etcd: HealthCheck = { name: 'etcd', check: leaderOrThrow };
  function leaderOrThrow(): void {
    if (!leader) throw new Error('no leader');
  }
  const ask = async (path: string, query = ''): Promise<unknown> =>
    await answerHealth(path, new URLSearchParams(query), [good, etcd, late], slis);
  await ask('/livez');
  await ask('/livez', 'exclude=etcd');
  await ask('/livez/etcd');
  leader = true;
  await ask('/readyz');
  await ask('/readyz');
  expect(
    slis
      .text()
      .split('\n')
      .filter((line) => !line.startsWith('#')),
  ).toEqual([
    'kubernetes_healthcheck{name="etcd",type="livez"} 0',
    'kubernetes_healthcheck{name="etcd",type="readyz"} 1',
    'kubernetes_healthcheck{name="ping",type="livez"} 1',
    'kubernetes_healthcheck{name="ping",type="readyz"} 1',
    'kubernetes_healthcheck{name="shutdown",type="readyz"} 1',
    'kubernetes_healthchecks_total{name="etcd",status="error",type="livez"} 1',
    'kubernetes_healthchecks_total{name="etcd",status="success",type="readyz"} 2',
    'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 2',
    'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 2',
    'kubernetes_healthchecks_total{name="shutdown",status="success",type="readyz"} 2',
    expect.stringMatching(/^process_start_time_seconds \d{10}/),
    '',
  ]);
  expect(slis.text()).toContain('# TYPE kubernetes_healthcheck gauge\n');
  expect(slis.text()).toContain('# TYPE kubernetes_healthchecks_total counter\n');
});
