// A volume cannot be attached or mounted, for another reason than something that is not there: the driver's or kernel's words.

import { MOUNT_BACKOFF } from '../../../agent/volumes/mount-failures.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import {
  failuresInARow,
  hasStarted,
  isDeleted,
  isEnded,
  isScheduled,
  lastEvent,
  nextTry,
  podArgument,
  timing,
} from '../pod-view.ts';

const STEPS: ReadonlyMap<string, string> = new Map([
  ['AttachVolume.Attach', 'attaching it to the node'],
  ['MountVolume.WaitForAttach', 'waiting until it is attached'],
  ['MountVolume.MountDevice', 'staging it on the node'],
  ['MountVolume.SetUp', 'mounting it for the pod'],
  ['MapVolume.SetUpDevice', 'staging the device on the node'],
  ['MapVolume.MapPodDevice', 'mapping the device for the pod'],
]);

interface FormatFailure {
  readonly program: string;
  readonly device: string;
  readonly output: string;
}

/** A device could not be formatted: what the agent, and the kubelet, report then. Pure. */
export function formatFailure(why: string): FormatFailure | undefined {
  const own = /(mkfs\.\w+) (\S+) failed: (.*)$/s.exec(why);
  if (own !== null) return { program: own[1] ?? '', device: own[2] ?? '', output: firstLine(own[3] ?? '') };
  const kubelet = /format of disk "([^"]+)" failed: type:\("(\w+)"\).* output:\((.*)\)\s*$/s.exec(why);
  if (kubelet === null) return undefined;
  return { program: `mkfs.${kubelet[2]}`, device: kubelet[1] ?? '', output: firstLine(kubelet[3] ?? '') };
}

/** mkfs prints its version first. */
function firstLine(output: string): string {
  const lines = output.split('\n').map((line) => line.trim());
  return lines.find((line) => line !== '' && !/^mke2fs \d/.test(line)) ?? '';
}

export const volumeFailed: Rule<PodFacts> = {
  name: 'volume-failed',
  find: (facts) => {
    if (!isScheduled(facts) || isDeleted(facts) || isEnded(facts) || hasStarted(facts)) return undefined;
    const event = lastEvent(facts, ['FailedMount', 'FailedMapVolume', 'FailedAttachVolume'], /failed for volume "/);
    if (event === undefined) return undefined;
    const [, step = '', volume = '', why = ''] =
      /^(\S+) failed for volume "([^"]+)" ?: (.*)$/s.exec(event.message) ?? [];
    const csi = facts.spans.findLast(({ kind, outcome }) => kind === 'csi' && outcome === 'error');
    const format = formatFailure(why);
    const failures = failuresInARow(
      facts.spans,
      ({ kind, name, attributes }) =>
        kind === 'volume' && name === 'MountVolume.SetUp' && attributes['volume'] === volume,
    );
    const next = nextTry(failures, event, MOUNT_BACKOFF);
    const cause: Cause = {
      text:
        format === undefined
          ? `${STEPS.get(step) ?? step} fails`
          : 'an empty device gets a file system first: that fails',
      call:
        format !== undefined
          ? { name: format.program, to: 'the node', with: format.device, answer: format.output }
          : csi === undefined
            ? { name: step, to: 'the node', answer: why }
            : { name: csi.name, to: `the CSI driver`, answer: csi.error ?? why },
      ...timing(event),
      ...(next === undefined ? {} : { next }),
    };
    return {
      state: 'broken',
      verdict:
        format === undefined
          ? `volume ${volume} cannot be mounted: ${why.replace(/\.$/, '')}`
          : `volume ${volume} cannot be formatted: ${format.program} on ${format.device} fails: ${format.output}`,
      chain: [{ text: 'no container starts before all volumes are mounted' }, cause],
      commands: [
        { command: `kubectl describe pod ${podArgument(facts)}`, why: 'the volumes of the pod and its events' },
      ],
    };
  },
};
