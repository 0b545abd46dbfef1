// The beginning of an exercise: its directory, its shell's environment, its namespace and its world. What is made here is
// taken away by leave.ts.

import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { ApiClient } from '../../client/api.ts';
import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Stored } from '../../client/types.ts';
import { readFileIfExists } from '../../lib/atomic.ts';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { poll } from '../../lib/retry.ts';
import { expandVariables, variablesOf, writeEnvironment } from './environment.ts';
import { saveNode } from './saved.ts';
import { type Session, sourceOf } from './session.ts';

/** For giving up only. ms */
const NAMESPACE_MS = 300_000;
const LOOK_MS = 50;
/** On the namespaces that exercises make: another one of the same name is not touched. */
export const NAMESPACE_LABEL = 'nodelet.dev/exercise';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
}

const PLURALS: ReadonlyMap<string, string> = new Map([
  ['Pod', 'pods'],
  ['Service', 'services'],
  ['ConfigMap', 'configmaps'],
  ['Secret', 'secrets'],
]);

/** The manifests of a world. Throws for one that is damaged. Pure. */
export function parseWorld(text: string): readonly Manifest[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as Manifest;
  });
}

/** Created as `kubectl apply` does, so that the user can go on with it. */
async function create(client: ApiClient, namespace: string, manifest: Manifest): Promise<void> {
  const plural = PLURALS.get(manifest.kind);
  if (plural === undefined) throw new Error(`a world has no objects of kind ${manifest.kind}`);
  const { annotations = {}, ...metadata } = manifest.metadata;
  const applied = { ...manifest, metadata: { ...metadata, annotations, namespace } };
  const all = { ...annotations, 'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(applied)}\n` };
  const body = { ...manifest, metadata: { ...metadata, namespace, annotations: all } };
  await client.create(resourcePath(manifest.apiVersion, plural, { namespace }), body, {
    query: { fieldValidation: 'Strict' },
  });
}

async function makeNamespace(client: ApiClient, name: string, exercise: string): Promise<void> {
  const namespace = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { [NAMESPACE_LABEL]: exercise } },
  };
  try {
    await client.create('/api/v1/namespaces', namespace);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    throw new UserError(`there is a namespace ${name} already: delete it, or wait until it is gone`);
  }
  const found = async (plural: string, object: string): Promise<boolean> => {
    try {
      await client.get<Stored<object>>(resourcePath('v1', plural, { namespace: name, name: object }));
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  };
  // Pods of a namespace that lacks them are refused, or wait for their token's volume.
  const complete = async (): Promise<boolean> =>
    (await found('serviceaccounts', 'default')) && (await found('configmaps', 'kube-root-ca.crt'));
  if (!(await poll(complete, { clock: systemClock, everyMs: LOOK_MS, limitMs: NAMESPACE_MS })))
    throw new UserError(`the namespace ${name} has no service account: does the control plane run? See "nodelet up"`);
}

/** Manifests, with the lab's names in place of ${…}; world.yaml as well. */
async function copyFiles(session: Session): Promise<void> {
  const source = sourceOf(session.exercise);
  const variables = variablesOf(session);
  for (const name of await readdir(source)) {
    const to = join(session.machine.directory, name);
    if (name.endsWith('.yaml'))
      await writeFile(to, expandVariables(await readFile(join(source, name), 'utf8'), variables));
    else if (name === 'README.md') await copyFile(join(source, name), to);
  }
}

/** Rejects with UserError where the namespace is taken. The exercise's directory must not exist yet. */
export async function beginExercise(session: Session): Promise<void> {
  const { exercise, machine } = session;
  await mkdir(machine.directory);
  await writeEnvironment(session);
  await copyFiles(session);
  if (exercise.changesNode === true) await saveNode(machine);
  await makeNamespace(machine.client, machine.namespace, exercise.name);
  // What breaks the node comes first: the world's pods are to meet it.
  await exercise.setUp?.(machine);
  const world = await readFileIfExists(join(machine.directory, 'world.yaml'));
  if (world === undefined) return;
  for (const manifest of parseWorld(world)) await create(machine.client, machine.namespace, manifest);
}
