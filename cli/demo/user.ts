// The demo's hands: what a person would type. With kubectl where the machine has it, else with nodelet's own client.

import { readFile } from 'node:fs/promises';
import type { Deployment } from 'kubernetes-types/apps/v1';
import { parse, parseAllDocuments } from 'yaml';
import type { ApiClient } from '../../client/api.ts';
import { isAlreadyExists } from '../../client/errors.ts';
import { execInPod } from '../../client/exec.ts';
import { readLogs } from '../../client/logs.ts';
import { resourcePath } from '../../client/paths.ts';
import { exec, execOk } from '../../lib/exec.ts';
import { LIMIT_MS } from './service-account.ts';

export interface DemoUser {
  /** "kubectl v1.33.1" or "nodelet's own client". */
  readonly name: string;
  createNamespace(namespace: string): Promise<void>;
  apply(file: string): Promise<void>;
  logs(namespace: string, pod: string): Promise<string>;
  exec(namespace: string, pod: string, command: readonly string[]): Promise<string>;
  delete(namespace: string, pod: string): Promise<void>;
  /** As `kubectl set env`: the deployment's pods get this variable, and are replaced. */
  setEnv(namespace: string, deployment: string, name: string, value: string): Promise<void>;
}

/** kubectl from PATH, when there is one that runs. */
export async function chooseUser(kubeconfig: string, client: ApiClient): Promise<DemoUser> {
  const version = await exec('kubectl', ['version', '--client', '--output=json']).catch(() => undefined);
  if (version?.code !== 0) return ownClient(client);
  const info = parse(version.stdout) as { clientVersion?: { gitVersion?: string } };
  return kubectl(kubeconfig, info.clientVersion?.gitVersion ?? 'of unknown version');
}

function kubectl(kubeconfig: string, version: string): DemoUser {
  const run = (...args: string[]): Promise<string> =>
    execOk('kubectl', ['--kubeconfig', kubeconfig, ...args], { timeoutMs: LIMIT_MS });
  return {
    name: `kubectl ${version}`,
    createNamespace: async (namespace) => {
      await run('create', 'namespace', namespace);
    },
    apply: async (file) => {
      await run('apply', '-f', file);
    },
    logs: (namespace, pod) => run('-n', namespace, 'logs', pod),
    exec: (namespace, pod, command) => run('-n', namespace, 'exec', pod, '--', ...command),
    delete: async (namespace, pod) => {
      await run('-n', namespace, 'delete', 'pod', pod, '--wait=false');
    },
    setEnv: async (namespace, deployment, name, value) => {
      await run('-n', namespace, 'set', 'env', `deployment/${deployment}`, `${name}=${value}`);
    },
  };
}

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
}

function ownClient(client: ApiClient): DemoUser {
  return {
    name: "nodelet's own client",
    createNamespace: async (name) => {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      await client.create('/api/v1/namespaces', namespace).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
      });
    },
    apply: async (file) => {
      for (const document of parseAllDocuments(await readFile(file, 'utf8'))) {
        const manifest = document.toJS() as Manifest;
        const { namespace = 'default' } = manifest.metadata;
        const plural = `${manifest.kind.toLowerCase()}s`;
        await client.create(resourcePath(manifest.apiVersion, plural, { namespace }), manifest);
      }
    },
    logs: (namespace, pod) => readLogs(client, { namespace, pod }),
    exec: async (namespace, pod, command) => {
      const outcome = await execInPod(client.access, { namespace, pod, command });
      if (outcome.exitCode !== 0) {
        throw new Error(`${command.join(' ')} in ${pod}: exit ${outcome.exitCode}: ${outcome.stderr.trim()}`);
      }
      return outcome.stdout;
    },
    delete: async (namespace, pod) => {
      await client.delete(resourcePath('v1', 'pods', { namespace, name: pod }));
    },
    setEnv: async (namespace, deployment, name, value) => {
      const path = resourcePath('apps/v1', 'deployments', { namespace, name: deployment });
      const { spec } = await client.get<Deployment>(path);
      const containers = spec?.template.spec?.containers.map((container) => ({
        name: container.name,
        env: [{ name, value }],
      }));
      await client.patch(path, { spec: { template: { spec: { containers } } } }, 'strategic');
    },
  };
}
