// A volume is being made ready and nothing has failed, but it takes its time: a driver's call that has not returned, mkfs, or the
// walk through all files for fsGroup, with its count.

import { elapsedMs } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';
import type { OpenCall } from '../../../lib/trace.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Finding, Rule } from '../finding.ts';
import { hasStarted, isDeleted, isEnded, isScheduled, lastEvent, podArgument, timing } from '../pod-view.ts';
import { duration, plural } from '../words.ts';

/** Shorter ones are not worth a word. ms */
const LONG_MS = 1_000;

/** ".../volumes/<plugin>/<name>" */
const volumeOfPath = (path: string): string => /\/volumes\/[^/]+\/([^/]+)/.exec(path)?.[1] ?? path;

/** The kubelet's event, from time to time during a long walk. */
const WALK = /^Setting volume ownership for (\S+), processed (\d+) files/;

interface Step {
  readonly verdict: string;
  readonly cause: Cause;
  readonly why: string;
  readonly command: string;
}

/** An attribute of the call, or of the nearest call around it that has one of this name; '' without. */
function attributeOf(open: readonly OpenCall[], call: OpenCall | undefined, name: string): string {
  for (let each = call; each !== undefined; each = open.find(({ id }) => id === each?.parent)) {
    const value = getOwn(each.attributes, name);
    if (value !== undefined) return String(value);
  }
  return '';
}

function stepOf(facts: PodFacts, call: OpenCall): Step | undefined {
  const { kind, name, attributes, start } = call;
  const took = duration(elapsedMs(start, facts.now));
  const volume = attributeOf(facts.open, call, 'volume');
  const of = volume === '' ? 'a volume' : `volume ${volume}`;
  if (name === 'applyFSGroup') {
    const path = String(attributes['path']);
    return walkStep(volume === '' ? volumeOfPath(path) : volume, Number(attributes['files']), `for ${took}`, {
      text: `each file of the volume gets group ${attributes['gid']} before a container starts`,
      call: { name: 'chown and chmod', to: 'the kernel', with: path },
      since: start,
    });
  }
  if (kind === 'mount' && name.startsWith('format ')) {
    const program = `mkfs.${name.slice('format '.length)}`;
    const device = String(attributes['device']);
    return {
      verdict: `${of} is being formatted: ${program} has run on ${device} for ${took}`,
      cause: {
        text: 'an empty device gets a file system before it is mounted for the first time',
        call: { name: program, to: 'the node', with: device, answer: 'none yet' },
        since: start,
      },
      command: `pgrep -a ${program}`,
      why: 'on the node: the program, and how far it is (its state in /proc)',
    };
  }
  if (kind !== 'csi' || elapsedMs(start, facts.now) < LONG_MS) return undefined;
  const driver = attributeOf(facts.open, call, 'driver');
  const doing = name === 'NodeStageVolume' ? 'staging it (a new one is also formatted there)' : 'mounting it';
  return {
    verdict: `${of} waits for CSI driver${driver === '' ? '' : ` ${driver}`}: ${name} has not returned for ${took}`,
    cause: {
      text: `the driver is at ${doing}`,
      call: { name, to: `CSI driver ${driver}`.trim(), answer: 'none yet' },
      since: start,
    },
    command: 'kubectl get pods -A -o wide',
    why: 'the driver’s pod on the node: its log says what it is at',
  };
}

function walkStep(volume: string, files: number, age: string, cause: Cause): Step {
  return {
    verdict: `volume ${volume} is given to the pod’s fsGroup ${age}: ${plural(files, 'file')} so far`,
    cause,
    command: '',
    why: 'fsGroupChangePolicy: OnRootMismatch leaves out the walk where the volume’s root has the group already',
  };
}

export const volumeUnderWay: Rule<PodFacts> = {
  name: 'volume-under-way',
  find: (facts): Finding | undefined => {
    if (!isScheduled(facts) || isDeleted(facts) || isEnded(facts) || hasStarted(facts)) return undefined;
    const [step = reported(facts)] = facts.open.flatMap((call) => stepOf(facts, call) ?? []);
    if (step === undefined) return undefined;
    return {
      state: 'waiting',
      verdict: step.verdict,
      chain: [{ text: 'no container starts before all volumes are mounted' }, step.cause],
      commands: [
        {
          command:
            step.command === ''
              ? `kubectl get pod ${podArgument(facts)} -o jsonpath='{.spec.securityContext}'`
              : step.command,
          why: step.why,
        },
      ],
    };
  },
};

/** A kubelet has no trace, and reports long walks in events. */
function reported(facts: PodFacts): Step | undefined {
  const event = lastEvent(facts, ['VolumePermissionChangeInProgress'], WALK);
  const [, path = '', files = ''] = WALK.exec(event?.message ?? '') ?? [];
  if (event === undefined || path === '') return undefined;
  return walkStep(volumeOfPath(path), Number(files), `for ${duration(elapsedMs(event.first, facts.now))} and more`, {
    text: 'each file of the volume gets the group before a container starts',
    call: { name: 'chown and chmod', to: 'the kernel', with: path },
    ...timing(event),
  });
}
