// `tap show`: names for ids, filters, text and JSON.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { matchesMethod, matchesPod } from '../../../../cli/tap/patterns.ts';
import { parseMoment, type ShowOptions, show } from '../../../../cli/tap/show.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { removeTree } from '../../../../lib/remove-tree.ts';
import { IDS_A, podLife, recordingLines } from './messages.ts';

let directory: string;
let file: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodelet-show-'));
  file = join(directory, 'a.crirec');
  const events = {
    method: 'GetContainerEvents' as const,
    at: 0,
    took: 9000,
    response: [[1300, { container_id: IDS_A.container, container_event_type: 'CONTAINER_STARTED_EVENT' }]] as const,
  };
  writeFileSync(
    file,
    recordingLines([{ method: 'Version', at: 500, response: { version: '0.1.0' } }, ...podLife(IDS_A), events]).join(
      '',
    ),
  );
});
afterAll(() => removeTree(directory));

async function shown(options: Partial<ShowOptions> = {}): Promise<string[]> {
  const lines: string[] = [];
  await show(file, { output: 'text', ...options }, (line) => lines.push(line));
  return lines;
}

const methods = async (options: Partial<ShowOptions>): Promise<string[]> =>
  (await shown({ ...options, output: 'json' })).map((line) => JSON.parse(line).method.split('/').at(-1));

test('one line a call, with the pod and container of its ids', async () => {
  const lines = await shown();
  expect(lines).toHaveLength(13);
  expect(lines).toContain('    1.200 s  demo/web main  CreateContainer  OK  1.0 ms');
  expect(lines).toContain('    1.800 s  demo/web  StopPodSandbox  OK  1.0 ms');
  expect(lines).toContain('    0.500 s  -  Version  OK  1.0 ms');
  expect(lines).toContain('    0.000 s  -  GetContainerEvents  OK  9000.0 ms  1 messages');
});

test('with --full the messages, and names beside the ids', async () => {
  const [line = ''] = await shown({ full: true, call: 'StartContainer' });
  expect(line).toContain(`      container_id: ${IDS_A.container} (demo/web main)`);
});

test('JSON has everything', async () => {
  const [line = ''] = await shown({ output: 'json', call: 'CreateContainer' });
  expect(JSON.parse(line)).toMatchObject({
    time: '2026-01-02T03:04:06.200Z',
    method: '/runtime.v1.RuntimeService/CreateContainer',
    pod: 'demo/web',
    container: 'main',
    status: 'OK',
    requests: [
      {
        message: {
          config: {
            metadata: { name: 'main' },
            envs: [
              { key: 'A', value: '1' },
              { key: 'B', value: '2' },
            ],
          },
        },
      },
    ],
    responses: [{ message: { container_id: IDS_A.container } }],
  });
});

test.each<readonly [Partial<ShowOptions>, readonly string[]]>([
  [
    { container: 'main' },
    ['CreateContainer', 'StartContainer', 'ExecSync', 'StopContainer', 'RemoveContainer', 'GetContainerEvents'],
  ],
  [{ pod: 'web', call: '*Sandbox' }, ['RunPodSandbox', 'StopPodSandbox', 'RemovePodSandbox']],
  [{ pod: 'other' }, []],
  [{ call: '/runtime.v1.RuntimeService/V*' }, ['Version']],
  [{ since: '1900ms' }, ['RemovePodSandbox', 'ListPodSandbox', 'GetContainerEvents']],
  [{ until: '0.6s' }, ['Version', 'GetContainerEvents']],
  [{ since: '2026-01-02T03:04:05.400Z', until: '1s', call: 'V*' }, ['Version']],
])('%j', async (options, expected) => {
  expect(await methods(options)).toEqual(expected);
});

test.each([
  ['web', 'demo/web', true],
  ['demo/web', 'demo/web', true],
  ['other/web', 'demo/web', false],
  ['we*', 'demo/web', true],
  ['w.b', 'demo/web', false],
  ['web', undefined, false],
])('pod %s matches %s: %s', (pattern, pod, expected) => {
  expect(matchesPod(pattern, pod)).toBe(expected);
});

test('methods by name and by path', () => {
  expect(matchesMethod('List*', '/runtime.v1.RuntimeService/ListContainers')).toBe(true);
  expect(matchesMethod('*v1.Image*', '/runtime.v1.RuntimeService/ListContainers')).toBe(false);
});

test.each(['yesterday', '12', '-1s', '2026'])('the time %s is refused', (text) => {
  expect(() => parseMoment(text, epochMs(0), '--since')).toThrow('--since must be');
});
