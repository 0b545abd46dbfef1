// A volume has to be attached to the pod's node first, and is not: no controller has requested it, the attacher has not done it, or it
// failed, in the driver's words.

import { elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { hasStarted, isDeleted, isEnded, isScheduled, lastEvent, timing } from '../pod-view.ts';
import { duration } from '../words.ts';

interface Use {
  readonly claim: string;
  readonly volume: string;
  readonly driver: string;
}

function uses({ references: { claims, attachments, attachDrivers } }: PodFacts): readonly Use[] {
  return [...claims].flatMap(([claim, lookup]): Use[] => {
    const volume = lookup.state === 'found' ? lookup.value.volume : undefined;
    const driver = volume?.spec?.csi?.driver;
    if (volume === undefined || driver === undefined) return [];
    const { name } = volume.metadata;
    const requested = attachments.some(({ spec }) => spec.source.persistentVolumeName === name);
    return requested || attachDrivers.includes(driver) ? [{ claim, volume: name, driver }] : [];
  });
}

const NOT_REQUESTED: Cause = {
  text: 'the attach/detach controller (of kube-controller-manager) makes the VolumeAttachment when the pod has a node',
};

export const volumeAttach: Rule<PodFacts> = {
  name: 'volume-attach',
  find: (facts) => {
    if (!isScheduled(facts) || isDeleted(facts) || isEnded(facts) || hasStarted(facts)) return undefined;
    const node = facts.pod.spec.nodeName ?? '';
    for (const { claim, volume, driver } of uses(facts)) {
      const attachment = facts.references.attachments.find(({ spec }) => spec.source.persistentVolumeName === volume);
      if (attachment?.status?.attached === true) continue;
      const event = lastEvent(facts, ['FailedAttachVolume'], `"${volume}"`);
      const symptom: Cause = { text: 'no container starts before all volumes are mounted, and attached before that' };
      const look = { command: 'kubectl get volumeattachments', why: 'what is attached where, and what is not yet' };
      const what = `volume ${volume} of claim ${claim} is not attached to node ${node}`;
      if (attachment === undefined) {
        return {
          state: 'waiting',
          verdict: `${what}: there is no VolumeAttachment for it`,
          chain: [
            symptom,
            {
              text: `driver ${driver} has to attach its volumes (CSIDriver attachRequired), and no controller has requested it`,
              ...timing(event),
            },
            NOT_REQUESTED,
          ],
          commands: [look],
        };
      }
      const { name, creationTimestamp, deletionTimestamp } = attachment.metadata;
      const since = parseRfc3339(creationTimestamp);
      const age = since === undefined ? '' : `, after ${duration(elapsedMs(since, facts.now))}`;
      const { attacher } = attachment.spec;
      const failure = attachment.status?.attachError;
      const failedAt = parseRfc3339(failure?.time);
      const why =
        deletionTimestamp !== undefined
          ? 'it is still being detached'
          : failure === undefined
            ? `attacher ${attacher} has not answered${age}`
            : `attacher ${attacher}: ${failure.message ?? 'it failed'}`;
      return {
        state: failure === undefined ? 'waiting' : 'broken',
        verdict: `${what}: ${why}`,
        chain: [
          symptom,
          { text: `VolumeAttachment ${name} is not attached`, ...(since === undefined ? {} : { since }) },
          {
            text: failure === undefined ? `${attacher} has to attach it` : `${attacher} could not attach it`,
            call: {
              name: 'ControllerPublishVolume',
              to: `CSI driver ${attacher}`,
              with: `volume ${volume}, node ${node}`,
              answer: failure?.message ?? 'none yet',
            },
            ...(failedAt === undefined ? timing(event) : { at: failedAt }),
          },
        ],
        commands: [
          { command: `kubectl describe volumeattachment ${name}`, why: 'its status and the last error' },
          look,
        ],
      };
    }
    return undefined;
  },
};
