// Capacity and health of CSI volumes: NodeGetVolumeStats of each, at most once a minute, and an event when a driver reports that
// a volume is abnormal. A volume whose driver is busy with it keeps its last figures.

import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { singleFlight } from '../../../lib/single-flight.ts';
import { podReference } from '../../model/event-reference.ts';
import type { EventRecorder } from '../../ports/api.ts';
import type { NodeVolumeStats } from '../../ports/csi.ts';
import type { VolumeStats } from '../../ports/volume-stats.ts';
import type { CsiVolumes } from './csi-volumes.ts';
import type { MountedVolume } from './expander.ts';

/** The kubelet's volumeStatsAggPeriod. */
const MAX_AGE_MS = 60_000;
/** A driver that takes longer is called again next time. */
const DEADLINE_MS = 10_000;

export interface CsiStatsOptions {
  readonly volumes: CsiVolumes;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly onError: (message: string) => void;
}

/** Pure. */
export function volumeFigures(answer: NodeVolumeStats): Omit<VolumeStats, 'podUid' | 'name' | 'at'> {
  const figures: { -readonly [K in keyof VolumeStats]?: VolumeStats[K] } = {};
  for (const { unit, total, available, used } of answer.usage) {
    if (unit === 'BYTES') {
      figures.capacityBytes = Number(total);
      figures.availableBytes = Number(available);
      figures.usedBytes = Number(used);
    } else if (unit === 'INODES') {
      figures.inodes = Number(total);
      figures.inodesFree = Number(available);
      figures.inodesUsed = Number(used);
    }
  }
  if (answer.volume_condition !== null) {
    figures.condition = { abnormal: answer.volume_condition.abnormal, message: answer.volume_condition.message };
  }
  return figures;
}

export class CsiStats {
  readonly #options: CsiStatsOptions;
  readonly #known = new Map<string, VolumeStats>();
  /** Never rejects: what cannot be read is left out, and reported to `onError`. */
  readonly read = singleFlight(() => this.#readAll());

  constructor(options: CsiStatsOptions) {
    this.#options = options;
  }

  async #readAll(): Promise<readonly VolumeStats[]> {
    const mounted = this.#options.volumes.mounted();
    const keys = new Set(mounted.map(({ mounted: one, volumeName }) => `${one.pod.metadata.uid}/${volumeName}`));
    for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key);
    const all = await Promise.all(
      mounted.map(async ({ volumeName, mounted: one }) => {
        const key = `${one.pod.metadata.uid}/${volumeName}`;
        try {
          await this.#refresh(key, volumeName, one);
        } catch (error) {
          this.#options.onError(
            `Failed to calculate volume metrics: volume ${one.volume.specName}: ${errorMessage(error)}`,
          );
        }
        return this.#known.get(key);
      }),
    );
    return all.filter((stats) => stats !== undefined);
  }

  async #refresh(key: string, name: string, { volume, pod, path, driver: find }: MountedVolume): Promise<void> {
    const { clock, recorder, volumes } = this.#options;
    const known = this.#known.get(key);
    if (known !== undefined && clock.now() - known.at < MAX_AGE_MS && clock.now() >= known.at) return;
    if (volumes.volumes.busy(volume)) return;
    const driver = find();
    const capabilities = await driver.capabilities();
    if (!capabilities.has('GET_VOLUME_STATS')) return;
    const answer = await volumes.volumes.serialize(volume, () =>
      driver.node.NodeGetVolumeStats(
        {
          volume_id: volume.handle,
          volume_path: path,
          staging_target_path: volumes.volumes.stagingPath(volume) ?? '',
        },
        { deadlineMs: DEADLINE_MS },
      ),
    );
    const { claim } = volume;
    const stats: VolumeStats = {
      podUid: pod.metadata.uid,
      name,
      ...(claim === undefined ? {} : { pvcRef: { name: claim.name, namespace: claim.namespace } }),
      ...volumeFigures(answer),
      at: clock.now(),
    };
    this.#known.set(key, stats);
    if (stats.condition?.abnormal === true && known?.condition?.message !== stats.condition.message) {
      const message = `Volume ${name}: ${stats.condition.message}`;
      recorder.event(podReference(pod), 'Warning', 'VolumeConditionAbnormal', message);
    }
  }
}
