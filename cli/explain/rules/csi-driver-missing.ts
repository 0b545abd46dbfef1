// A volume needs a CSI driver that is not registered with the pod's node.

import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { hasStarted, isDeleted, isEnded, isScheduled, lastEvent, timing } from '../pod-view.ts';
import { list } from '../words.ts';

interface Use {
  readonly volume: string;
  readonly driver: string;
}

function driversOf({ pod, references }: PodFacts): readonly Use[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, csi, persistentVolumeClaim }): Use[] => {
    if (csi !== undefined) return [{ volume: name, driver: csi.driver }];
    const claim = references.claims.get(persistentVolumeClaim?.claimName ?? '');
    const driver = claim?.state === 'found' ? claim.value.volume?.spec?.csi?.driver : undefined;
    return driver === undefined ? [] : [{ volume: name, driver }];
  });
}

export const csiDriverMissing: Rule<PodFacts> = {
  name: 'csi-driver-missing',
  find: (facts) => {
    const { drivers } = facts.references;
    if (drivers === undefined || !isScheduled(facts) || isDeleted(facts) || isEnded(facts) || hasStarted(facts))
      return undefined;
    const use = driversOf(facts).find(({ driver }) => !drivers.includes(driver));
    // A volume that no container mounts needs no driver.
    const event = lastEvent(facts, ['FailedMount', 'FailedMapVolume', 'FailedAttachVolume']);
    if (use === undefined || event === undefined) return undefined;
    const node = facts.pod.spec.nodeName ?? '';
    const known = drivers.length === 0 ? 'none is' : `${list(drivers)} ${drivers.length === 1 ? 'is' : 'are'}`;
    return {
      state: 'broken',
      verdict: `volume ${use.volume} needs CSI driver ${use.driver}, which is not registered on node ${node} (${known})`,
      chain: [
        { text: 'no container starts before all volumes are mounted' },
        {
          text: `volume ${use.volume} cannot be mounted`,
          ...timing(event),
          call: {
            name: event.message.split(' ')[0] ?? '',
            to: `CSI driver ${use.driver}`,
            answer: event.message.replace(/^.*failed for volume "[^"]*" ?: /, ''),
          },
        },
        {
          text: `a driver registers with a socket in the agent’s plugins_registry; ${use.driver} has not, or its program is away`,
        },
      ],
      commands: [
        { command: `kubectl get csinode ${node} -o yaml`, why: 'the drivers that are registered there' },
        { command: 'kubectl get pods -A -o wide', why: `whether the driver’s pod runs on node ${node}` },
      ],
    };
  },
};
