import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { buildTimeline } from '../../../../cli/timeline/build.ts';
import { readEvidence } from '../../../../cli/timeline/run.ts';
import { IDS_A, recordingLines, sandboxConfig } from '../tap/messages.ts';

const dir = await mkdtemp(join(tmpdir(), 'nodelet-tap-evidence-'));
afterAll(() => rm(dir, { recursive: true }));

async function recorded(lines: readonly string[]): Promise<string> {
  const path = join(dir, 'kubelet.crirec');
  await writeFile(path, lines.map((line) => (line.endsWith('\n') ? line : `${line}\n`)).join(''));
  return path;
}

test('a tap’s recording of any kubelet is a timeline of its calls and the runtime’s events', async () => {
  const config = { metadata: { name: 'main', attempt: 0 }, image: { image: 'nginx:stable' } };
  const path = await recorded(
    recordingLines([
      {
        method: 'RunPodSandbox',
        at: 100,
        took: 200,
        request: { config: sandboxConfig(IDS_A) },
        response: { pod_sandbox_id: IDS_A.sandbox },
      },
      {
        method: 'CreateContainer',
        at: 310,
        took: 40,
        request: { pod_sandbox_id: IDS_A.sandbox, config, sandbox_config: sandboxConfig(IDS_A) },
        response: { container_id: IDS_A.container },
      },
      { method: 'StartContainer', at: 360, took: 50, request: { container_id: IDS_A.container }, response: {} },
      {
        method: 'StopContainer',
        at: 900,
        took: 10,
        request: { container_id: IDS_A.container },
        end: { status: 5, message: 'no such container' },
      },
    ]),
  );
  const timeline = buildTimeline(await readEvidence(path), { pod: 'demo/web' });
  expect(timeline.bars.filter(({ lane }) => lane === 'cri').map(({ name, start, end }) => [name, start, end])).toEqual([
    ['RunPodSandbox', 0, 200],
    ['CreateContainer main', 210, 250],
    ['StartContainer main', 260, 310],
    ['StopContainer main', 800, 810],
  ]);
  expect(timeline.bars.find(({ name }) => name.startsWith('StopContainer'))).toMatchObject({
    outcome: 'error',
    error: 'NOT_FOUND no such container',
  });
  expect(timeline.critical).toMatchObject({
    from: 'the first call',
    to: 'the last container started',
    start: 0,
    end: 310,
  });
  expect(timeline.bars.find(({ name }) => name === 'main')).toMatchObject({
    lane: 'containers',
    start: 310,
    outcome: 'open',
  });
});

test('a file that is neither is refused', async () => {
  const path = join(dir, 'else.txt');
  await writeFile(path, 'hello\n');
  await expect(readEvidence(path)).rejects.toThrow(/is neither a trace .* nor a recording/);
  await expect(readEvidence(join(dir, 'missing'))).rejects.toThrow(/cannot read .*missing/);
});
