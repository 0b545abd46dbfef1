// A lab full of pods with data, for campaigns that hurt it: starts the pods, keeps others coming and going, and says what
// of the data is no longer what it was.

import { createHash } from 'node:crypto';
import type { Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { apply, eventually, isReady, podPath } from '../../e2e/agent/harness.ts';
import type { TestLab } from '../../e2e/support/lab.ts';
import type { Random } from '../random.ts';
import { type DataPod, damaged, dataPod, extraFiles, type HostData, makeHostData } from './pods.ts';

/** For giving up only: a container that was killed several times waits up to five minutes before its next start. */
const SETTLE_MS = 420_000;

export class DataStand {
  readonly lab: TestLab;
  readonly #log: (line: string) => void;
  readonly #random: Random;
  readonly #directory: string;
  #pods: readonly DataPod[] = [];
  /** What each container had written when it first ran: the checksum it shows. */
  readonly #sums = new Map<string, string>();
  /** A user's directory that pods which come and go mount. */
  #busy: HostData | undefined;
  readonly #over = new AbortController();
  #load: Promise<void> = Promise.resolve();

  constructor(lab: TestLab, directory: string, random: Random, log: (line: string) => void) {
    this.lab = lab;
    this.#directory = directory;
    this.#random = random;
    this.#log = log;
  }

  /** Starts `count` pods, one kind of volume after the other, and notes their data. */
  async start(count: number): Promise<void> {
    const pods: DataPod[] = [];
    for (let index = 0; index < count; index++) {
      pods.push(await dataPod(index, this.#directory, this.lab.nodeName, this.#random));
    }
    this.#pods = pods;
    await apply(this.lab, ...pods.flatMap(({ objects }) => objects));
    const late = await this.settle();
    if (late.length > 0) throw new Error(`not Ready before anything was done: ${late.join('; ')}`);
    for (const { name, own } of pods) {
      if (own !== undefined) this.#sums.set(name, await this.#run(name, own.sum));
    }
    this.#busy = await makeHostData(`${this.#directory}/busy`, this.#random);
  }

  #run(name: string, command: string): Promise<string> {
    return eventually(`${name} to run ${command}`, async () => {
      const { code, stdout, stderr } = await this.lab.tryKubectl(['exec', name, '--', 'sh', '-c', command]);
      if (code !== 0) throw new Error(stderr.trim());
      return stdout;
    });
  }

  /** Waits until every pod is Ready; names those that are not in the end. */
  async settle(): Promise<readonly string[]> {
    const late: string[] = [];
    const deadline = performance.now() + SETTLE_MS;
    for (const { name, kind } of this.#pods) {
      let last = '';
      await eventually(
        name,
        async () => {
          const pod = await this.lab.client.get<Pod>(podPath(name));
          last = JSON.stringify(pod.status);
          return isReady(pod) ? true : undefined;
        },
        Math.max(0, deadline - performance.now()),
      ).catch((error: unknown) => late.push(`${name} (${kind}): ${errorMessage(error)}: ${last}`));
    }
    return late;
  }

  /** Which life each pod is in: its UID and how often its container has started again. */
  async lives(): Promise<ReadonlyMap<string, string>> {
    const lives = new Map<string, string>();
    for (const { name } of this.#pods) {
      const { metadata, status } = await this.lab.client.get<Pod>(podPath(name));
      const restarts = status?.containerStatuses?.map(({ restartCount }) => restartCount).join(', ') ?? 'unknown';
      lives.set(name, `uid ${metadata.uid}, restarts ${restarts}`);
    }
    return lives;
  }

  /** Pods that come and go, with volumes of their own and a user's, and a ConfigMap that changes, until `endLoad`. */
  beginLoad(): void {
    this.#load = this.#runLoad();
  }

  async endLoad(): Promise<void> {
    this.#over.abort();
    await this.#load;
  }

  async #runLoad(): Promise<void> {
    let refused = 0;
    for (let index = 0; !this.#over.signal.aborted; index++) {
      try {
        await apply(this.lab, ...this.#passing(index));
        await systemClock.sleep(1000 + this.#random.below(2000));
        const names = [`pod/passing-${index}`, `pvc/passing-${index}`];
        const flags = this.#random.below(4) === 0 ? ['--grace-period=0', '--force'] : [];
        const result = await this.lab.tryKubectl(['delete', ...names, '--wait=false', '--ignore-not-found', ...flags]);
        if (result.code !== 0) throw new Error(result.stderr.trim());
      } catch (error) {
        // A server that was killed this moment refuses; what matters is what it does with the rest.
        refused++;
        if (refused % 50 === 1) this.#log(`load: ${errorMessage(error).slice(0, 200)}`);
        await systemClock.sleep(200);
      }
    }
    await eventually(
      'what passed to be deleted',
      async () => {
        const all = ['delete', 'pods,pvc', '-l', 'passing=yes', '--wait=false', '--ignore-not-found'];
        return (await this.lab.tryKubectl(all)).code === 0 ? true : undefined;
      },
      SETTLE_MS,
    );
  }

  #passing(index: number): readonly object[] {
    const name = `passing-${index}`;
    const labels = { passing: 'yes' };
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'default', labels },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'loop',
        resources: { requests: { storage: '16Mi' } },
      },
    };
    const config = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'changing', namespace: 'default' },
      data: { index: String(index), filler: 'x'.repeat(this.#random.below(100_000)) },
    };
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default', labels },
      spec: {
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: index % 2 === 0,
        containers: [
          {
            name: 'main',
            image: 'busybox:stable',
            command: ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done'],
            volumeMounts: [
              { name: 'host', mountPath: '/host' },
              { name: 'host', mountPath: '/part', subPath: 'nested' },
              { name: 'claim', mountPath: '/claim', subPath: 'part' },
              { name: 'config', mountPath: '/config' },
            ],
          },
        ],
        volumes: [
          { name: 'host', hostPath: { path: this.#busy?.directory } },
          { name: 'claim', persistentVolumeClaim: { claimName: name } },
          { name: 'config', configMap: { name: 'changing' } },
        ],
      },
    };
    return [config, ...(index % 3 === 0 ? [] : [claim]), index % 3 === 0 ? withoutClaim(pod) : pod];
  }

  /** What of the data is not what it was: one line each. Pods have to be Ready. */
  async losses(): Promise<readonly string[]> {
    const wrong = [...(await this.hostLosses())];
    for (const { name, kind, own, files } of this.#pods) {
      if (own !== undefined) {
        const [before, now] = [this.#sums.get(name), await this.#run(name, own.sum)];
        if (before !== now) wrong.push(`${name} (${kind}): its data has changed`);
      }
      for (const [path, content] of files ?? []) {
        const sum = (await this.#run(name, `sha256sum < ${path}`)).split(' ')[0];
        if (sum !== createHash('sha256').update(content).digest('hex'))
          wrong.push(`${name} (${kind}): ${path} differs`);
      }
    }
    return wrong;
  }

  /** The same for the machine's own directories alone: with or without pods. */
  async hostLosses(): Promise<readonly string[]> {
    const all = [...this.#pods.flatMap(({ host }) => host ?? []), ...(this.#busy === undefined ? [] : [this.#busy])];
    const wrong = await Promise.all(all.map(async (data) => [...(await damaged(data)), ...(await extraFiles(data))]));
    return wrong.flat();
  }

  /** Deletes every pod, claim and volume of the stand. Returns what does not go. */
  async remove(): Promise<readonly string[]> {
    const { lab } = this;
    const left: string[] = [];
    for (const what of ['pods', 'pvc', 'pv']) {
      await eventually(
        `${what} to be deleted`,
        async () => {
          await lab.tryKubectl(['delete', what, '--all', '--wait=false']);
          const { code, stdout } = await lab.tryKubectl(['get', what, '-o', 'name']);
          if (code === 0 && stdout.trim() !== '') throw new Error(stdout.trim().replaceAll('\n', ', '));
          return code === 0 ? true : undefined;
        },
        SETTLE_MS,
      ).catch((error: unknown) => left.push(errorMessage(error)));
    }
    return left;
  }
}

function withoutClaim<
  T extends { spec: { containers: { volumeMounts: { name: string }[] }[]; volumes: { name: string }[] } },
>(pod: T): T {
  const keep = ({ name }: { name: string }): boolean => name !== 'claim';
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: pod.spec.containers.map((each) => ({ ...each, volumeMounts: each.volumeMounts.filter(keep) })),
      volumes: pod.spec.volumes.filter(keep),
    },
  };
}
