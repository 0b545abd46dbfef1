// A container that the runtime made for an agent that was killed, after its successor reported the end before it as the last.

import { describe, expect, it } from 'vitest';
import { withoutLateContainers } from '../../../../agent/pods/late-containers.ts';
import { stepPod } from '../../../../agent/pods/pod-step.ts';
import type { ContainerId } from '../../../../agent/ports/runtime.ts';
import { facts, instance, podOf, snapshotOf, syncing } from './step-facts.ts';

const ENDED = instance('exited');
const CREATED = instance('created', { id: 'web-2' as ContainerId, restartCount: 1 });
const STARTED = instance('running', { id: 'web-2' as ContainerId, restartCount: 1 });

function reported(exitCode: number) {
  const terminated = { exitCode, containerID: 'containerd://web-1' };
  const status = { name: 'web', image: '', imageID: '', ready: false, restartCount: 0, state: { terminated } };
  return { phase: 'Running', containerStatuses: [status] };
}

describe('a created container', () => {
  it.each<[string, string, number, boolean, number]>([
    ['does not count after the last end', 'OnFailure', 0, false, 1],
    ['does not count after any end where nothing is restarted', 'Never', 1, false, 1],
    ['counts after an end that is followed by a restart', 'OnFailure', 1, false, 2],
    ['counts where everything is restarted', 'Always', 0, false, 2],
    ['counts where a restart is under way', 'OnFailure', 0, true, 2],
  ])('%s', (_, restartPolicy, exitCode, wanted, count) => {
    const snapshot = snapshotOf([CREATED, ENDED]);
    const seen = withoutLateContainers(podOf({ restartPolicy }), reported(exitCode), snapshot, () => wanted);
    expect(seen.containers).toHaveLength(count);
  });

  it('counts where no end was reported, and always once it was started', () => {
    const pod = podOf({ restartPolicy: 'Never' });
    expect(withoutLateContainers(pod, undefined, snapshotOf([CREATED, ENDED]), () => false).containers).toHaveLength(2);
    expect(withoutLateContainers(pod, reported(0), snapshotOf([STARTED, ENDED]), () => false).containers).toHaveLength(
      2,
    );
  });

  it('is not started, and the pod ends', () => {
    const snapshot = snapshotOf([CREATED, ENDED]);
    const step = stepPod(
      syncing(),
      facts({ pod: podOf({ restartPolicy: 'OnFailure' }), previous: reported(0), snapshot }),
    );
    expect(step.actions.map(({ kind }) => kind)).not.toContain('startContainer');
    expect(step.state.kind).not.toBe('syncing');
  });
});
