// A lab whose agent, containerd, CSI driver, images, volumes and logs are on one small file system, and one round of
// filling that to the last byte under load. What goes wrong is collected, not thrown. The API server's own store is
// elsewhere, as a cluster's is: what it does on a full disk has tests of its own.

import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { LabProcess } from '../../../cli/lab/paths.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { ConfigMap, Node, Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import {
  apply,
  condition,
  container,
  eventsOf,
  eventually,
  FOREVER,
  getPod,
  gone,
  ready,
  shellPod,
} from '../../e2e/agent/harness.ts';
import { startLab, type TestLab } from '../../e2e/support/lab.ts';
import { type LoopDisk, makeLoopDisk } from '../../support/loop-disk.ts';

/** Images, their snapshots and two volumes take some 300. */
const DISK_MEGABYTES = 700;
/** For giving up only. */
const LIMIT_MS = 200_000;
/**
 * containerd 1.6 that cannot write down the end of a container tries again after 1 s, 2 s, 4 s … 300 s: where others take each block
 * that becomes free, several tries fail. Until then it shows the container as running.
 */
const DELETION_LIMIT_MS = 420_000;
const WATCHED: readonly LabProcess[] = ['containerd', 'agent', 'csi-driver', 'controlplane'];

/** Never evicted: it can be observed for as long as the disk is full. */
const CRITICAL = { priorityClassName: 'system-node-critical' };
/** The control plane keeps pods from a node whose disk is full: the node is to be asked all the same. */
const TOLERANT = { tolerations: [{ operator: 'Exists' }] };

/** Data that is written once, and a line every so often: each is on the volume before the next one. */
const KEEP = `
[ -f /data/sum ] || { head -c 4000000 /dev/urandom >/data/blob; sync /data/blob; sha256sum /data/blob >/data/new;
  sync /data/new; mv /data/new /data/sum; }
trap "exit 0" TERM
i=$(wc -l </data/lines 2>/dev/null || echo 0)
while :; do
  if echo $((i + 1)) >>/data/lines && sync /data/lines; then i=$((i + 1)); fi
  sleep 0.3
done`;

const MOUNTS = {
  volumeMounts: [
    { name: 'data', mountPath: '/data' },
    { name: 'settings', mountPath: '/settings' },
  ],
};
const settings = { name: 'settings', configMap: { name: 'settings' } };
const onClaim = (name: string, claimName: string, script = KEEP): object =>
  shellPod(
    name,
    script,
    { ...CRITICAL, volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }, settings] },
    MOUNTS,
  );
const onEmptyDir = (name: string, more: object = {}): object =>
  shellPod(name, FOREVER, { ...more, volumes: [{ name: 'data', emptyDir: {} }, settings] }, MOUNTS);
const claim = (name: string, storageClassName: string): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '32Mi' } } },
});
/** Its images have their blocks before anything is written to them: a full disk does not affect their users. */
const FULL_CLASS = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'loop-full' },
  provisioner: 'loop.csi.nodelet',
  parameters: { allocation: 'full' },
  volumeBindingMode: 'WaitForFirstConsumer',
};

export interface RoundResult {
  tried: number;
  refused: number;
  /** Processes that died, and pods that did not go, come or recover. */
  readonly crashed: string[];
  /** Data that is not what it was. */
  readonly lost: string[];
}

export class SmallDiskLab {
  readonly lab: TestLab;
  readonly #disk: LoopDisk;
  readonly #aside: string;
  readonly #stopped = new AbortController();
  #round = 0;
  #version = 0;

  private constructor(lab: TestLab, disk: LoopDisk, aside: string) {
    this.lab = lab;
    this.#disk = disk;
    this.#aside = aside;
  }

  static async start(): Promise<SmallDiskLab> {
    const disk = await makeLoopDisk('full', { megabytes: DISK_MEGABYTES });
    const aside = await mkdtemp(join(tmpdir(), 'nodelet-store-'));
    let lab: TestLab | undefined;
    try {
      lab = await startLab({
        parent: disk.path,
        csi: true,
        // Time to move the store, when the API server is ended for it.
        restart: { initialMs: 5000, maxMs: 5000, factor: 1, resetMs: 1 },
        kubeletConfiguration: {
          evictionHard: { 'nodefs.available': '3%' },
          evictionPressureTransitionPeriod: '1s',
          nodeStatusUpdateFrequency: '2s',
        },
      });
      const small = new SmallDiskLab(lab, disk, aside);
      await small.#moveStore();
      await apply(lab, FULL_CLASS, small.#settings(), claim('full', 'loop-full'), claim('sparse', 'loop'));
      await apply(lab, onClaim('keeper', 'full'), onClaim('thin', 'sparse'));
      for (const name of ['keeper', 'thin']) await ready(lab, name, LIMIT_MS);
      return small;
    } catch (error) {
      await execOk('umount', ['--lazy', dirname(lab?.paths.storeFile ?? aside)]).catch(() => undefined);
      await lab?.stop();
      await disk.remove();
      await rm(aside, { recursive: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await execOk('umount', ['--lazy', dirname(this.lab.paths.storeFile)]);
    await this.lab.stop();
    await this.#disk.remove();
    await rm(this.#aside, { recursive: true, force: true });
  }

  #pid(name: LabProcess): number {
    const found = this.lab.lab.pid(name);
    if (found === undefined) throw new Error(`${name} does not run`);
    return found;
  }

  async #killed(name: LabProcess): Promise<void> {
    const old = this.#pid(name);
    process.kill(old, 'SIGKILL');
    await eventually(`${name} to be gone`, () => (this.lab.lab.pid(name) === old ? undefined : true));
  }

  async #moveStore(): Promise<void> {
    const directory = dirname(this.lab.paths.storeFile);
    await this.#killed('apiserver');
    await cp(directory, this.#aside, { recursive: true, preserveTimestamps: true });
    await execOk('mount', ['--bind', this.#aside, directory]);
    await eventually('the API server', async () =>
      (await this.lab.tryKubectl(['get', '--raw', '/readyz'])).code === 0 ? true : undefined,
    );
  }

  #settings(): object {
    const data = { version: String(++this.#version), padding: 'x'.repeat(20_000) };
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data };
  }

  #inside(pod: string, command: string): Promise<string> {
    return this.lab.kubectl('exec', pod, '--', 'sh', '-c', command);
  }

  /** What is wrong with the data of the two pods; nothing when all is there. `lines`: each number once, in order. */
  async #dataProblem(pod: string, lines: boolean): Promise<string | undefined> {
    const sums = await this.#inside(pod, 'cd / && sha256sum -c /data/sum 2>&1');
    if (!sums.includes('/data/blob: OK')) return `${pod}: ${sums.trim()}`;
    if (!lines) return undefined;
    const numbers = (await this.#inside(pod, 'cat /data/lines')).trim().split('\n');
    const wrong = numbers.findIndex((number, index) => number !== String(index + 1));
    return wrong < 0 ? undefined : `${pod}: line ${wrong + 1} of ${numbers.length} is "${numbers[wrong]}"`;
  }

  /** Pods come and go, and the settings change, until `stop` aborts. Refusals of a full node are part of it. */
  async #load(result: RoundResult, stop: AbortSignal): Promise<void> {
    const names: string[] = [];
    const path = resourcePath('v1', 'configmaps', { namespace: 'default', name: 'settings' });
    for (let turn = 0; !stop.aborted; turn++) {
      const name = `load-${this.#round}-${turn}`;
      await apply(this.lab, onEmptyDir(name, TOLERANT));
      names.push(name);
      result.tried++;
      const oldest = names.length > 3 ? names.shift() : undefined;
      if (oldest !== undefined) await this.#deletePod(oldest);
      const version = String(++this.#version);
      await this.lab.client.patch<ConfigMap>(path, { data: { version } }, 'merge');
      await systemClock.sleep(1000, stop).catch(() => undefined);
    }
    for (const name of names) await this.#deletePod(name);
  }

  /** One that is gone already is no error. */
  async #deletePod(name: string): Promise<void> {
    try {
      await this.lab.client.delete(resourcePath('v1', 'pods', { namespace: this.lab.namespace, name }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Fills the disk while pods come and go, looks at what goes on, frees it, and looks whether all is as it should be. */
  async round(log: (line: string) => void): Promise<RoundResult> {
    const { lab } = this;
    const round = ++this.#round;
    const result: RoundResult = { tried: 0, refused: 0, crashed: [], lost: [] };
    const check = async (what: string, body: () => Promise<unknown>): Promise<void> => {
      result.tried++;
      const began = performance.now();
      try {
        await body();
        log(`${what}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
      } catch (error) {
        result.crashed.push(`${what}: ${errorMessage(error)}`);
        log(`WRONG: ${result.crashed.at(-1)}`);
      }
    };
    const inline = { name: 'data', csi: { driver: 'loop.csi.nodelet', volumeAttributes: { size: '16Mi' } } };
    const leavers = [`leaves-${round}`, `leaves-csi-${round}`, `leaves-later-${round}`];
    await apply(
      lab,
      onEmptyDir(`leaves-${round}`, CRITICAL),
      shellPod(`leaves-csi-${round}`, FOREVER, { ...CRITICAL, volumes: [inline, settings] }, MOUNTS),
      // Two pods use one volume: what is written of it gets shorter, and does not go.
      onClaim(`leaves-later-${round}`, 'full', FOREVER),
      onEmptyDir(`best-effort-${round}`),
    );
    for (const name of [...leavers, `best-effort-${round}`]) await ready(lab, name, LIMIT_MS);
    const before = await Promise.all(['keeper', 'thin'].map((name) => getPod(lab, name)));
    const pids = new Map(WATCHED.map((name) => [name, this.#pid(name)]));
    const same = (): void => {
      for (const [name, pid] of pids) if (lab.lab.pid(name) !== pid) throw new Error(`${name} ended`);
    };

    const stopLoad = new AbortController();
    const load = this.#load(result, AbortSignal.any([stopLoad.signal, this.#stopped.signal])).catch(
      (error: unknown) => {
        result.crashed.push(`load: ${errorMessage(error)}`);
      },
    );
    await systemClock.sleep(3000);
    await this.#disk.fill();
    log(`the disk is full: ${await this.#disk.free()} bytes are left`);

    await check('who cannot be updated says why', () =>
      eventually(
        'the reason',
        async () => {
          const events = await eventsOf(lab, 'keeper');
          if (events.some(({ message = '' }) => /no space left on device/.test(message))) return true;
          // Pods that go give back a few blocks, which are enough for the settings.
          await this.#disk.fill();
          return undefined;
        },
        LIMIT_MS,
      ),
    );
    await check('the Node says so', () =>
      eventually(
        'DiskPressure',
        async () =>
          (await this.#nodeIs('DiskPressure', 'True')) && (await this.#nodeIs('Ready', 'True')) ? true : undefined,
        LIMIT_MS,
      ),
    );
    await check('a pod that is not critical is evicted', () =>
      eventually(
        'the eviction',
        async () => {
          const { status } = await getPod(lab, `best-effort-${round}`);
          return status?.phase === 'Failed' && status.reason === 'Evicted' ? true : undefined;
        },
        LIMIT_MS,
      ),
    );
    await check('a pod that is not critical is refused', async () => {
      await apply(lab, onEmptyDir(`late-${round}`, TOLERANT));
      await eventually(
        'the refusal',
        async () => {
          const { status } = await getPod(lab, `late-${round}`);
          return status?.phase === 'Failed' && /DiskPressure/.test(status.message ?? '') ? true : undefined;
        },
        LIMIT_MS,
      );
      result.refused++;
      await lab.kubectl('delete', 'pod', `late-${round}`, '--wait=false');
      await gone(lab, `late-${round}`, LIMIT_MS);
    });
    await check('pods can be deleted', async () => {
      for (const name of leavers) {
        await lab.kubectl('delete', 'pod', name, '--wait=false');
        await gone(lab, name, DELETION_LIMIT_MS);
      }
    });
    await check('nothing has ended', async () => same());
    // What was kept aside is in use by now: from here on there is nothing.
    await this.#disk.fill();
    await check('an agent that is killed starts on the full disk', async () => {
      await this.#killed('agent');
      await eventually('another agent', () => (lab.lab.pid('agent') === undefined ? undefined : true), LIMIT_MS);
      pids.set('agent', this.#pid('agent'));
      await eventually('an answer', () => this.#inside('keeper', 'wc -l </data/lines'), LIMIT_MS);
      same();
    });
    await check('whoever has blocks of his own writes on', async () => {
      const lines = async (): Promise<number> => Number(await this.#inside('keeper', 'wc -l </data/lines'));
      const then = await eventually('an answer', lines, LIMIT_MS);
      await eventually('more lines', async () => ((await lines()) > then ? true : undefined), LIMIT_MS);
    });

    stopLoad.abort();
    await load;
    await this.#disk.empty();
    await check('the Node recovers', () =>
      eventually(
        'no DiskPressure',
        async () => {
          return (await this.#nodeIs('DiskPressure', 'False')) && (await this.#nodeIs('Ready', 'True'))
            ? true
            : undefined;
        },
        LIMIT_MS,
      ),
    );
    await check('what could not start starts', async () => {
      await apply(lab, onEmptyDir(`late-${round}`));
      await ready(lab, `late-${round}`, LIMIT_MS);
      await lab.kubectl('delete', 'pod', `best-effort-${round}`, '--wait=false');
      await gone(lab, `best-effort-${round}`, LIMIT_MS);
    });
    await check('the newest settings arrive', () =>
      eventually(
        'the settings',
        async () => {
          const shown = await this.#inside('keeper', 'cat /settings/version');
          return shown.trim() === String(this.#version) ? true : undefined;
        },
        LIMIT_MS,
      ),
    );
    await check('who had no blocks of his own writes on again', () =>
      eventually('a write', () => this.#inside('thin', 'echo again >/data/again && sync /data/again'), LIMIT_MS),
    );
    await check('pods that ran have run on', async () => {
      for (const pod of before) {
        const now = container(await getPod(lab, pod.metadata.name));
        const { containerID } = container(pod);
        if (now.restartCount !== 0 || now.containerID !== containerID)
          throw new Error(`${pod.metadata.name} restarted`);
      }
    });
    for (const [name, lines] of [
      ['keeper', true],
      ['thin', false],
    ] as const) {
      result.tried++;
      const problem = await this.#dataProblem(name, lines).catch(errorMessage);
      if (problem !== undefined) result.lost.push(problem);
    }
    await check('nothing has ended', async () => same());
    await lab.kubectl('delete', 'pod', `late-${round}`, '--wait=false');
    await check('nothing is left of pods that are gone', async () => {
      await eventually(
        'the directories',
        async () => {
          const left = await this.#leftovers();
          if (left.length > 0) throw new Error(left.join(', '));
          return true;
        },
        LIMIT_MS,
      );
    });
    return result;
  }

  async #nodeIs(type: string, status: string): Promise<boolean> {
    const node = await this.lab.client.get<Node>(resourcePath('v1', 'nodes', { name: this.lab.nodeName }));
    return condition(node, type)?.status === status;
  }

  /** Directories of pods that the API server does not have, and halves of files. */
  async #leftovers(): Promise<readonly string[]> {
    const { lab } = this;
    const pods = await lab.client.list<Pod>(resourcePath('v1', 'pods'));
    const known = new Set(pods.items.map(({ metadata }) => metadata.uid));
    const directories = await readdir(join(lab.paths.kubeletDir, 'pods'));
    const { stdout } = await exec('find', [
      lab.paths.kubeletDir,
      lab.paths.csi.stateDir,
      lab.paths.cni.cacheDir,
      '-xdev',
      '-name',
      '*.tmp*',
    ]);
    return [...directories.filter((uid) => !known.has(uid)), ...stdout.split('\n').filter((line) => line !== '')];
  }

  /** The ends of the lab's logs, for a failure. */
  async logs(): Promise<string> {
    const texts = await Promise.all(
      (['agent', 'containerd', 'csi-driver'] as const).map(async (name) => {
        const text = await readFile(this.lab.paths.logFile(name), 'utf8').catch(errorMessage);
        return `== ${name}\n${text.slice(-6000)}`;
      }),
    );
    return texts.join('\n');
  }
}
