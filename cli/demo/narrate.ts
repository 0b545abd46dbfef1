// Turns trace spans of one pod into the lines that the demo prints. Pure; knows the names of calls, runs nothing.

import type { EpochMs } from '../../lib/clock.ts';
import type { Span, SpanAttribute } from '../../lib/trace.ts';

const text = (value: SpanAttribute): string => (Array.isArray(value) ? value.join(', ') : String(value ?? ''));
const short = (id: SpanAttribute): string => text(id).slice(0, 12);

type Narrator = (span: Span) => string | undefined;

/** The line for each kind of call; a call without a line here is left out. */
const NARRATORS: Readonly<Partial<Record<Span['kind'], Narrator>>> = {
  volume: ({ name, attributes }) => {
    if (name === 'MountVolume.SetUp')
      return `mount volume ${text(attributes['volume'])} (${text(attributes['plugin'])})`;
    return name === 'UnmountVolumes' ? 'unmount the volumes' : undefined;
  },
  cgroup: ({ name, attributes }) => {
    if (name === 'ensurePod') return `make cgroup ${text(attributes['path'])}`;
    return name === 'removePod' ? 'remove the cgroup' : undefined;
  },
  cri: ({ name, attributes }) => {
    const container = text(attributes['container']);
    switch (name) {
      case 'RunPodSandbox':
        return 'RunPodSandbox: pause process and namespaces are up';
      case 'PullImage':
      case 'ImageStatus':
        return `${name} ${text(attributes['image'])}`;
      case 'CreateContainer':
        return `CreateContainer ${container}`;
      case 'StartContainer':
      case 'StopContainer':
      case 'RemoveContainer':
        return `${name} ${short(container)}`;
      case 'StopPodSandbox':
      case 'RemovePodSandbox':
        return `${name} ${short(attributes['sandbox'])}`;
      default:
        return undefined;
    }
  },
  cni: ({ name, attributes }) => {
    if (!/^(ADD|DEL) /.test(name)) return undefined;
    if (!/^ADD network /.test(name)) return name;
    const ips = text(attributes['ips']);
    const routes = text(attributes['routes']);
    return `${name}: ${text(attributes['ifName'])} has ${ips}${routes === '' ? '' : `, route ${routes}`}`;
  },
  netlink: ({ name, attributes }) => {
    if (!name.startsWith('NEWLINK')) return name.startsWith('DELLINK') ? `kernel: ${name}` : undefined;
    const master = text(attributes['master']);
    const on = master === '' ? '' : ` on bridge ${master}`;
    return `kernel: ${text(attributes['kind'])} ${text(attributes['link'])}${on}, ${text(attributes['addresses'])} by ${text(attributes['hostRoute'])}`;
  },
  api: ({ name }) => {
    if (name === 'PATCH pods/status') return 'status written to the API server';
    return name === 'DELETE pods' ? 'the API object is deleted' : undefined;
  },
  probe: ({ name }) => name,
  hook: ({ name }) => name,
};

/** One line for the span, or undefined when it is not worth one. `origin`: what its time is counted from. */
export function narrate(span: Span, origin: EpochMs): string | undefined {
  const text = NARRATORS[span.kind]?.(span);
  if (text === undefined) return undefined;
  const at = `${(span.start + span.durationMs - origin).toFixed(0)} ms`;
  const took = span.durationMs >= 0.05 ? `  [${span.durationMs.toFixed(1)} ms]` : '';
  const failed = span.outcome === 'error' ? `  FAILED: ${span.error ?? ''}` : '';
  return `  ${at.padStart(9)}  ${span.kind.padEnd(7)}  ${text}${took}${failed}`;
}
