// The shell of an exercise: a file to source, a kubeconfig whose default namespace is the exercise's, and a directory with
// the programs that the machine lacks. All of it is in the exercise's own directory. Starts nothing.

import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { hasProgram } from '../../lib/has-program.ts';
import type { Session } from './session.ts';

/** For giving up only: how long a call of crictl may take. */
const CRICTL_SECONDS = 120;
const NODELET = fileURLToPath(new URL('../../bin/nodelet', import.meta.url));

/** A word for a POSIX shell, whatever is in it. Pure. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** What commands, texts and manifests of an exercise may name. */
export function variablesOf({ exercise, machine }: Pick<Session, 'exercise' | 'machine'>): ReadonlyMap<string, string> {
  return new Map([
    ['KUBECONFIG', join(machine.directory, 'kubeconfig')],
    ['CONTAINER_RUNTIME_ENDPOINT', `unix://${machine.runtimeSocket}`],
    ['IMAGE_SERVICE_ENDPOINT', `unix://${machine.runtimeSocket}`],
    ['CRI_CONFIG_FILE', join(machine.directory, 'crictl.yaml')],
    ['NODE', machine.nodeName],
    ['NAMESPACE', machine.namespace],
    ['LAB', machine.root],
    ['KUBELET_DIR', machine.kubeletDir],
    ['KUBELET_CONFIG', machine.kubeletConfig],
    ['POD_LOGS', machine.podLogsDir],
    ['CGROUP_ROOT', machine.cgroupRoot.replace(/\/$/, '')],
    ['CNI_CONF_DIR', machine.cniConfDir],
    ['CNI_PATH', machine.cniBinDir],
    ...Object.entries(exercise.variables?.(machine) ?? {}),
  ]);
}

/** `${NAME}` of the variables above is replaced; what else looks like one stays. Pure. */
export function expandVariables(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => variables.get(name) ?? whole);
}

/** The file to source. Pure. */
export function environmentFile(directory: string, variables: ReadonlyMap<string, string>): string {
  return [
    '# Source this file: it sets up a shell for the exercise.',
    ...[...variables].map(([name, value]) => `export ${name}=${quoted(value)}`),
    `case ":$PATH:" in *:${quoted(join(directory, 'bin'))}:*) ;; *) PATH=${quoted(join(directory, 'bin'))}:$PATH ;; esac`,
    'export PATH',
    `cd ${quoted(directory)} || return`,
    '',
  ].join('\n');
}

/** The programs in bin/. `missing`: which of kubectl and crictl the machine lacks. Pure. */
export function programs(root: string, missing: readonly string[]): ReadonlyMap<string, string> {
  const script = (words: readonly string[]): string => `#!/bin/sh\nexec ${words.map(quoted).join(' ')} "$@"\n`;
  return new Map([
    ['csi', script([NODELET, 'csi-call'])],
    ['restart-agent', script([NODELET, 'lab', 'restart-agent', '--root', root])],
    ...(missing.includes('crictl') ? [['crictl', script([NODELET, 'crictl'])] as const] : []),
    ...(missing.includes('kubectl') ? [['kubectl', script([NODELET, 'lab', 'kubectl'])] as const] : []),
  ]);
}

async function writeKubeconfig(session: Session): Promise<void> {
  const { paths, machine } = session;
  const config: { contexts: { context: object }[] } = parse(await readFile(paths.kubeconfig, 'utf8'));
  const contexts = config.contexts.map((each) => ({
    ...each,
    context: { ...each.context, namespace: machine.namespace },
  }));
  await writeFileAtomic(join(machine.directory, 'kubeconfig'), stringify({ ...config, contexts }), 0o600);
}

/** Writes all of it. The directory exists. */
export async function writeEnvironment(session: Session): Promise<void> {
  const { machine, paths } = session;
  const { directory } = machine;
  await writeKubeconfig(session);
  await writeFile(join(directory, 'env'), environmentFile(directory, variablesOf(session)));
  // crictl gives up after 2 s by default, in which a busy machine may not start a process.
  await writeFile(join(directory, 'crictl.yaml'), `timeout: ${CRICTL_SECONDS}\n`);
  const bin = join(directory, 'bin');
  await mkdir(bin, { recursive: true });
  await symlink(NODELET, join(bin, 'nodelet'));
  const needed = ['kubectl', 'crictl'];
  const there = await Promise.all(needed.map((name) => hasProgram(name)));
  const missing = needed.filter((_, index) => there[index] === false);
  for (const [name, script] of programs(paths.root, missing)) await writeFile(join(bin, name), script, { mode: 0o755 });
}
