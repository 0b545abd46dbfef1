// The pod is being deleted and its containers have ended, but a volume is still mounted: the kernel does not unmount it while a
// process uses it, or the driver refuses.

import type { MountFact, PodFacts } from '../facts.ts';
import type { Cause, Command, Rule } from '../finding.ts';
import { containers, failuresInARow, isDeleted, isScheduled } from '../pod-view.ts';

/** The volume's name is the last part of ".../volumes/<plugin>/<name>", and before "/mount" of a CSI volume. */
function volumeOf(path: string): string {
  return /\/volumes\/[^/]+\/([^/]+)/.exec(path)?.[1] ?? path;
}

const usersText = ({ users }: MountFact): string =>
  users.map(({ pid, command, uses }) => `process ${pid} (${command}) uses ${uses}`).join('; ');

export const volumeBusy: Rule<PodFacts> = {
  name: 'volume-busy',
  find: (facts) => {
    if (!isDeleted(facts) || !isScheduled(facts)) return undefined;
    if (containers(facts).some(({ status }) => status?.state?.running !== undefined)) return undefined;
    const mounts = facts.machine?.mounts ?? [];
    const failures = failuresInARow(
      facts.spans,
      ({ kind, name, attributes }) =>
        (kind === 'mount' && name === 'umount' && mounts.some(({ path }) => path === attributes['target'])) ||
        (kind === 'csi' && /^Node(Unpublish|Unstage)Volume$/.test(name)),
    );
    const [earliest] = failures;
    const failure = failures.at(-1);
    const failed = failure?.attributes['target'];
    const used = mounts.find(({ users, path }) => users.length > 0 && (failed === undefined || path === failed));
    if (failure === undefined && used === undefined) return undefined;
    const path = used?.path ?? (typeof failed === 'string' ? failed : undefined);
    const volume = path === undefined ? '' : ` ${volumeOf(path)}`;
    const [first] = used?.users ?? [];
    const who = first === undefined ? (failure?.error ?? '') : `process ${first.pid} (${first.command}) uses it`;
    const call: Cause = {
      text: 'the pod is forgotten only when its volumes are gone from the node',
      ...(failure === undefined
        ? {}
        : {
            call: {
              name: failure.name,
              to: failure.kind === 'csi' ? 'the CSI driver' : 'the kernel',
              ...(path === undefined ? {} : { with: path }),
              answer: failure.error ?? '',
            },
            ...(earliest === undefined ? {} : { since: earliest.start }),
            count: failures.length,
          }),
    };
    const commands: Command[] =
      first === undefined
        ? [{ command: `fuser -vm ${path ?? '/'}`, why: 'on the node: who uses the mount' }]
        : [
            {
              command: `kill ${first.pid}`,
              why: 'on the node: ends the process; the volume is then unmounted by itself',
            },
          ];
    return {
      state: 'broken',
      verdict: `it is being deleted, and volume${volume} cannot be unmounted: ${who}`,
      chain: [
        { text: 'its containers have ended' },
        call,
        ...(used === undefined ? [] : [{ text: `on the node, ${usersText(used)}` }]),
      ],
      commands,
    };
  },
};
