// Every command that README and docs show is run here: blocks marked `sh` by themselves, blocks marked `sh lab` with a
// lab running and its root in place of the default one. Commands in plain indented blocks are named below with the
// test that runs them.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exec } from '../../../lib/exec.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';

/** For giving up only. */
const BLOCK_MS = 900_000;
const TEST_MS = 1_000_000;
/** In place of the minutes that the pages give kubectl: a machine may be busy with other tests. */
const PATIENCE = '--timeout=600s';
const TREE = fileURLToPath(new URL('../../..', import.meta.url));
const PAGES = [
  'README.md',
  'labs/images/README.md',
  ...readdirSync(join(TREE, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

interface Block {
  readonly page: string;
  readonly line: number;
  readonly needs: 'lab' | 'nothing';
  readonly script: string;
}

function blocksOf(page: string, text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const fence = /^```sh( lab)?$/.exec(lines[at] ?? '');
    if (fence === null) continue;
    const end = lines.indexOf('```', at + 1);
    if (end < 0) throw new Error(`${page}:${at + 1}: the block does not end`);
    const script = lines.slice(at + 1, end).join('\n');
    blocks.push({ page, line: at + 1, needs: fence[1] === undefined ? 'nothing' : 'lab', script });
    at = end;
  }
  return blocks;
}

/** First words of lines in indented blocks that look like commands. */
function indentedCommands(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => /^ {4}(npm|nodelet|bin\/nodelet|vagrant|kubectl|sh) /.test(line))
    .map((line) => line.trim().split(/\s+#/)[0]?.trim() ?? '');
}

/** Commands that cannot run inside this test, and what runs them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'npm run demo': 'test/e2e/docs/demo.test.ts',
  'npm test': 'this very run',
  'nodelet agent --kubeconfig /etc/kubernetes/kubelet.conf \\': 'test/e2e/agent, with a kubeconfig of its own',
  'nodelet dockershim --docker unix:///var/run/docker.sock --listen unix:///run/dockershim.sock':
    'test/e2e/dockershim, where a lab starts it on sockets of its own',
  'nodelet agent --kubeconfig kubelet.conf --container-runtime-endpoint unix:///run/dockershim.sock --network runtime':
    'test/e2e/dockershim, with the lab’s kubeconfig and network',
  'nodelet crictl --runtime-endpoint unix:///run/dockershim.sock ps': 'test/e2e/dockershim',
  'nodelet up --root /tmp/lab-docker --runtime docker': 'test/e2e/dockershim, with a root of its own',
  'nodelet crictl --root /tmp/lab-docker pods': 'test/e2e/dockershim',
  'nodelet agent --kubeconfig worker-7.conf --hostname-override worker-7 --node-ip 192.0.2.17 \\':
    'test/e2e/nodes, with the kubeconfigs and addresses of the lab’s nodes',
  'nodelet proxy --kubeconfig proxy.conf --hostname-override worker-7 --cluster-cidr 10.244.0.0/16':
    'test/e2e/nodes, with the kubeconfigs and addresses of the lab’s nodes',
  'nodelet up --nodes 3 --zone a,b,c': 'test/e2e/drills, which starts such a lab',
  // Minutes of load; by hand, as npm run bench is.
  'npm run bench:scale -- --store file': 'test/unit/bench/requests.test.ts, its requests',
  'npm run bench:scale -- --store etcd --seconds 10': 'test/unit/bench/requests.test.ts, its requests',
  'npm run bench:scale -- --nodes 100 --pods 3000': 'test/unit/bench/requests.test.ts, its requests',
};

const pages = PAGES.map((page) => ({ page, text: readFileSync(join(TREE, page), 'utf8') }));
const blocks = pages.flatMap(({ page, text }) => blocksOf(page, text));
let lab: TestLab;
const directory = mkdtempSync(join(tmpdir(), 'nodelet-docs-'));
/** crictl gives up after 2 s by default, and its pages show it as one calls it. */
const CRI_CONFIG_FILE = join(directory, 'crictl.yaml');
writeFileSync(CRI_CONFIG_FILE, 'timeout: 300\n');

beforeAll(async () => {
  lab = await shareLab();
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await lab?.stop();
});

function prepared(block: Block): string {
  if (block.needs === 'nothing') return block.script;
  return block.script
    .replaceAll('/var/lib/nodelet', lab.root)
    .replace(/--timeout=\d+s/g, PATIENCE)
    .replace(/bin\/nodelet (explain|kubeconfig|trace|timeline)/g, `bin/nodelet $1 --root ${lab.root}`)
    .replace(/bin\/nodelet lab (\w+)/g, `bin/nodelet lab $1 --root ${lab.root}`);
}

describe.each(blocks)('$page:$line', (block) => {
  test(
    'the commands work as they are written',
    async () => {
      const options = { cwd: TREE, env: { ...process.env, CRI_CONFIG_FILE }, timeoutMs: BLOCK_MS };
      const result = await exec('bash', ['-euo', 'pipefail', '-c', prepared(block)], options);
      expect(result, `${result.stdout}\n${result.stderr}`).toMatchObject({ code: 0 });
    },
    TEST_MS,
  );
});

test('there are blocks to run on every page that shows commands', () => {
  expect(blocks.map((block) => block.page)).toEqual(
    expect.arrayContaining(['README.md', 'docs/lab.md', 'docs/trace.md']),
  );
});

test.each(pages)('$page: every command outside those blocks is run by a test that is named here', ({ text }) => {
  const unknown = indentedCommands(text).filter((command) => ELSEWHERE[command] === undefined);
  expect(unknown).toEqual([]);
});
