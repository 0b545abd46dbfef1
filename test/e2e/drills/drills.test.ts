// The drills of docs/drills*.md, each as it is written (test/support/drills.ts has the format): in one lab with three nodes, each drill in
// a namespace and a shell of its own, three at a time; those that need the lab for themselves come after the others, one by one. Each
// drill runs with one kubectl: the oldest and the newest in turns, from drill to drill. NODELET_DRILLS=all runs each with both.

import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Stored } from '../../../client/types.ts';
import { execOk } from '../../../lib/exec.ts';
import { Gate } from '../../../lib/gate.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { type Drill, difference, drillsOf, type Step } from '../../support/drills.ts';
import { eventually } from '../agent/harness.ts';
import { KUBECTL_ENVIRONMENT } from '../support/kubectl-environment.ts';
import { type KubectlVersion, kubectls } from '../support/kubectls.ts';
import { type PrivateLab, startLab } from '../support/lab.ts';
import { makeNamespace } from '../support/shared-lab.ts';
import { DrillShell } from './shell.ts';

const TREE = fileURLToPath(new URL('../../..', import.meta.url));
/** For giving up only. */
const BLOCK_MS = 600_000;
const GONE_MS = 600_000;
/** With the wait for its turn. */
const DRILL_MS = 3_600_000;
/** In place of the minutes that the pages give kubectl: a machine may be busy with other tests. */
const PATIENCE = '--timeout=300s';
const AT_ONCE = 3;
/** No other lab's, another run's neither: the machine has one route for it. */
const SERVICES = `10.223.${16 * (process.pid % 12)}.0/20`;

interface Run {
  readonly drill: Drill;
  readonly kubectl: KubectlVersion;
  readonly name: string;
}

const pages = readdirSync(join(TREE, 'docs'))
  .filter((name) => /^drills.*\.md$/.test(name))
  .map((name) => `docs/${name}`);
const drills = pages.flatMap((page) => drillsOf(page, readFileSync(join(TREE, page), 'utf8')));
const versions = (await kubectls()).filter(({ full }) => full);
const runs: readonly Run[] = drills.flatMap((drill, index) => {
  const chosen = process.env['NODELET_DRILLS'] === 'all' ? versions : [versions[index % versions.length]];
  return chosen.flatMap((kubectl) =>
    kubectl === undefined ? [] : [{ drill, kubectl, name: `${drill.title} (kubectl ${kubectl.version})` }],
  );
});

let lab: PrivateLab;

beforeAll(async () => {
  lab = await startLab({
    // Drills kill nodes.
    kills: true,
    nodes: { count: 3, zones: ['a', 'b', 'c'], serviceRange: SERVICES },
    proxy: 'iptables',
    dns: true,
    netpol: true,
    // A node that dies is noticed after 16 s in place of 40 s.
    kubeletConfiguration: { nodeLeaseDurationSeconds: 16 },
    controlplaneFlags: ['--node-monitor-grace-period', '16s', '--horizontal-pod-autoscaler-sync-period', '5s'],
  });
  // The node lifecycle controller removes the taint of its start a moment after a node is Ready.
  await eventually('the nodes to be without taints', async () => {
    const { items } = await lab.client.list<Node>(resourcePath('v1', 'nodes'));
    return items.every(({ spec }) => (spec?.taints ?? []).length === 0) ? true : undefined;
  });
});

// Fails when anything of the nodes is left on the machine.
afterAll(async () => lab?.stop());

/** The word that a page has for the namespace, for objects of the cluster and for files: each run has another one. */
const WORD = /(?<![a-z0-9])drill(?![a-z0-9])/gi;

const gate = new Gate(AT_ONCE);

/** A directory that has this kubectl as `kubectl`, and a kubeconfig whose namespace is the drill's. */
async function workshop({ kubectl }: Run, word: string): Promise<{ directory: string; env: NodeJS.ProcessEnv }> {
  const directory = `/tmp/${word}`;
  const bin = join(directory, '.bin');
  await mkdir(bin, { recursive: true });
  const command = kubectl.command.includes('/') ? kubectl.command : await which(kubectl.command);
  await symlink(command, join(bin, 'kubectl'));
  const KUBECONFIG = join(directory, '.kubeconfig');
  const config = await lab.kubectl('config', 'view', '--raw', '--flatten');
  const env = { ...process.env, ...KUBECTL_ENVIRONMENT, KUBECONFIG, PATH: `${bin}${delimiter}${process.env['PATH']}` };
  await execOk('sh', ['-c', 'umask 077; cat > "$KUBECONFIG"'], { env, stdin: config });
  await execOk('kubectl', ['config', 'set-context', '--current', `--namespace=${word}`], { env });
  return { directory, env };
}

async function which(name: string): Promise<string> {
  return (await execOk('sh', ['-c', `command -v ${name}`])).trim();
}

function prepared(script: string, word: string): string {
  return script
    .replaceAll('/var/lib/nodelet', lab.root)
    .replace(/bin\/nodelet node (\w+)/g, `bin/nodelet node $1 --root ${lab.root}`)
    .replace(/bin\/nodelet (explain|kubeconfig|trace|timeline)/g, `bin/nodelet $1 --root ${lab.root}`)
    .replace(/--timeout=\d+s/g, PATIENCE)
    .replace(WORD, word);
}

/** Undefined when the block does what the page shows. */
async function problemOf(shell: DrillShell, { drill }: Run, step: Step, word: string): Promise<string | undefined> {
  const script = prepared(step.script, word);
  const { output, status } = await shell.run(step.shown === undefined ? `set -e\n${script}\nset +e` : script, BLOCK_MS);
  const printed = output.replaceAll(word, 'drill').replaceAll(lab.root, '/var/lib/nodelet');
  const ended = status === null ? 'a command failed' : undefined;
  const wrong = ended ?? (step.shown === undefined ? undefined : difference(step.shown, printed));
  if (wrong === undefined) return undefined;
  const shown = step.shown === undefined ? '' : `\n--- shown\n${step.shown.lines.join('\n')}`;
  return `${drill.page}:${step.line}: ${wrong}${shown}\n--- printed\n${printed}`;
}

let number = 0;

async function runDrill(run: Run): Promise<void> {
  const word = `drill-${run.drill.slug}-${process.pid}-${number++}`;
  const { directory, env } = await workshop(run, word);
  await makeNamespace(lab.client, word);
  const shell = new DrillShell({ cwd: TREE, env });
  try {
    const problems: string[] = [];
    for (const step of run.drill.steps) {
      const problem = await problemOf(shell, run, step, word);
      if (problem !== undefined) problems.push(problem);
      if (shell.ended) break;
    }
    // All of them: what the first leads to says more about it.
    if (problems.length > 0) throw new Error(problems.join('\n'));
  } finally {
    await shell.close();
    await lab.kubectl('delete', 'namespace', word, '--wait=false');
    // Shells that sleep do not end at TERM: not the 30 s of each.
    await lab.kubectl('delete', 'pods', '--all', '--now', '--wait=false', '-n', word);
    await removeTree(directory);
  }
}

test.concurrent.each(runs.filter(({ drill }) => !drill.alone))(
  '$name',
  (run) => gate.run(() => runDrill(run)),
  DRILL_MS,
);

test.each(runs.filter(({ drill }) => drill.alone))(
  '$name',
  async (run) => {
    await namespacesGone();
    await runDrill(run);
  },
  DRILL_MS,
);

async function namesLeft(apiVersion: string, plural: string): Promise<readonly string[]> {
  const { items } = await lab.client.list<Stored<object>>(resourcePath(apiVersion, plural));
  return items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('drill-'));
}

/** With everything in them. */
async function namespacesGone(): Promise<void> {
  const gone = async () => ((await namesLeft('v1', 'namespaces')).length === 0 ? true : undefined);
  await eventually('the namespaces of drills to be gone', gone, GONE_MS);
}

test(
  'every namespace of a drill goes, and nothing of the drills is left in the cluster',
  async () => {
    await namespacesGone();
    expect(await namesLeft('v1', 'persistentvolumes')).toEqual([]);
    expect(await namesLeft('storage.k8s.io/v1', 'storageclasses')).toEqual([]);
  },
  DRILL_MS,
);
