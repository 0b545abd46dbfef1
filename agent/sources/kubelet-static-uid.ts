// The uid that a kubelet 1.34 gives a static pod without one (pkg/kubelet/config, applyDefaults), so that such a pod keeps
// its containers when a node is taken over from a kubelet or given back to it: MD5 over Go's dump of the pod with its
// defaults, then where the manifest is from. Other minor versions have other fields and so another uid: there a static pod
// starts again, as it does when a kubelet is upgraded. Pure.

import { createHash } from 'node:crypto';
import type { Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { POD_TYPES } from './kubelet-pod-types.ts';

/** Something whose form in a kubelet's memory is not known here. */
class NotDumped extends Error {
  override name = 'NotDumped';
}

interface Field {
  readonly name: string;
  readonly key: string;
  readonly type: string;
}

let parsed: ReadonlyMap<string, readonly Field[]> | undefined;

function structs(): ReadonlyMap<string, readonly Field[]> {
  parsed ??= new Map(
    POD_TYPES.trim()
      .split('\n')
      .map((line) => {
        const [struct = '', fields = ''] = line.split('|');
        const each = fields.split(', ').map((field) => {
          const [name = '', key = '', type = ''] = field.split(' ');
          return { name, key, type };
        });
        return [struct, each] as const;
      }),
  );
  return parsed;
}

const own = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? getOwn(value as Record<string, unknown>, key) : undefined;

/** The text of a value of a Go type, with the type in front of it where `typed`. */
function dump(type: string, value: unknown, typed: boolean): string {
  const [shown = '', beneath = shown] = type.split('=');
  return `${typed ? `(${shown})` : ''}${dumpValue(type, shown, beneath, value ?? undefined)}`;
}

function dumpValue(type: string, shown: string, beneath: string, value: unknown): string {
  if (shown.startsWith('*')) return value === undefined ? '<nil>' : dump(type.slice(1), value, false);
  if (shown.startsWith('[]')) {
    if (!Array.isArray(value)) return '<nil>';
    return `[${value.map((item) => dump(type.slice(2), item, false)).join(' ')}]`;
  }
  switch (shown) {
    case 'map[string]string':
      return dumpMap(value, String);
    case 'core.ResourceList':
      return dumpMap(value, dumpQuantity);
    case 'resource.Quantity':
      return dumpQuantity(value);
    case 'intstr.IntOrString':
      return dumpIntOrString(value);
    case 'v1.Time':
      if (value !== undefined) throw new NotDumped('a time');
      return '{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}';
  }
  const fields = structs().get(shown);
  if (fields !== undefined) return `{${fields.map((field) => dumpField(field, value)).join(' ')}}`;
  switch (beneath) {
    case 'string':
      return typeof value === 'string' ? value : '';
    case 'bool':
      return String(value === true);
    case 'int32':
    case 'int64':
      return typeof value === 'number' ? String(value) : '0';
  }
  if (value !== undefined) throw new NotDumped(shown);
  return '<nil>';
}

function dumpField({ name, key, type }: Field, struct: unknown): string {
  return `${name}:${dump(type, key === '.' ? struct : own(struct, key), true)}`;
}

function dumpMap(value: unknown, item: (value: unknown) => string): string {
  if (typeof value !== 'object' || value === null) return '<nil>';
  const entries = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `map[${entries.map(([key, one]) => `${key}:${item(one)}`).join(' ')}]`;
}

function dumpIntOrString(value: unknown): string {
  const text = typeof value === 'string';
  return `{Type:(intstr.Type)${text ? 1 : 0} IntVal:(int32)${text ? 0 : Number(value ?? 0)} StrVal:(string)${text ? value : ''}}`;
}

const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
/** Decimal digits that surely fit into 64 bits. */
const MOST_DIGITS = 15;

interface Amount {
  readonly value: bigint;
  /** A power of ten. */
  readonly scale: number;
  /** The text, where that is how the quantity is written anyway. */
  readonly text: string;
  readonly format: string;
}

function printAmount({ value, scale, text, format }: Amount): string {
  return (
    `{i:(resource.int64Amount){value:(int64)${value} scale:(resource.Scale)${scale}} ` +
    `d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)${text} Format:(resource.Format)${format}}`
  );
}

/** A quantity as apimachinery keeps it after reading (resource.ParseQuantity): those that fit into 64 bits, not rounded. */
function dumpQuantity(value: unknown): string {
  if (value === undefined) return printAmount({ value: 0n, scale: 0, text: '', format: '' });
  const source = String(value);
  if (source === '0') return printAmount({ value: 0n, scale: 0, text: '0', format: 'DecimalSI' });
  const match = /^0*(\d*)(?:\.(\d*))?([a-zA-Z]*)$/.exec(source);
  if (match === null) throw new NotDumped(source);
  const [, digits = '', fraction = '', suffix = ''] = match;
  const number = digits === '' ? '0' : digits;
  const shifted = number + fraction;
  if (shifted.length > MOST_DIGITS) throw new NotDumped(source);
  const binary = getOwn(BINARY, suffix);
  if (binary !== undefined) {
    const precision = MOST_DIGITS - number.length - Math.trunc((binary * 3) / 10) - 1;
    if (fraction !== '' || precision < 0) throw new NotDumped(source);
    const text = BigInt(number) % 8n === 0n ? '' : source;
    return printAmount({ value: BigInt(number) << BigInt(binary), scale: 0, text, format: 'BinarySI' });
  }
  const exponent = getOwn(DECIMAL, suffix);
  // A finer scale than a thousandth is rounded by the defaults.
  if (exponent === undefined || exponent - fraction.length < -3) throw new NotDumped(source);
  const scale = exponent - fraction.length;
  const canonical = scale % 3 === 0 && !shifted.endsWith('000') && !shifted.startsWith('0');
  return printAmount({ value: BigInt(shifted), scale, text: canonical ? source : '', format: 'DecimalSI' });
}

/** The status of a pod without a written status. */
const NO_STATUS =
  '{ObservedGeneration:(int64)0 Phase:(core.PodPhase) Conditions:([]core.PodCondition)<nil> Message:(string) ' +
  'Reason:(string) NominatedNodeName:(string) HostIP:(string) HostIPs:([]core.HostIP)<nil> PodIPs:([]core.PodIP)<nil> ' +
  'StartTime:(*v1.Time)<nil> QOSClass:(core.PodQOSClass) InitContainerStatuses:([]core.ContainerStatus)<nil> ' +
  'ContainerStatuses:([]core.ContainerStatus)<nil> EphemeralContainerStatuses:([]core.ContainerStatus)<nil> ' +
  'Resize:(core.PodResizeStatus) ResourceClaimStatuses:([]core.PodResourceClaimStatus)<nil> ' +
  'ExtendedResourceClaimStatus:(*core.PodExtendedResourceClaimStatus)<nil>}';

/** In a kubelet's memory these are part of the security context. */
const OF_SECURITY_CONTEXT = ['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace', 'hostUsers'] as const;

/** The pod as Go prints it. `spec` has its defaults. Throws NotDumped. */
function dumpPod(metadata: object, spec: Pod['spec']): string {
  // Kubelets fill in more of them, from all containers.
  if (own(spec, 'resources') !== undefined) throw new NotDumped('resources of the pod as a whole');
  const moved = Object.fromEntries(OF_SECURITY_CONTEXT.map((key) => [key, own(spec, key)]));
  const internal = {
    ...spec,
    serviceAccountName: spec.serviceAccountName ?? spec.serviceAccount,
    securityContext: { ...spec.securityContext, ...moved },
  };
  return (
    '(*core.Pod){TypeMeta:(v1.TypeMeta){Kind:(string) APIVersion:(string)} ' +
    `ObjectMeta:${dump('v1.ObjectMeta', metadata, true)} ` +
    `Spec:${dump('core.PodSpec', internal, true)} Status:(core.PodStatus)${NO_STATUS}}`
  );
}

/**
 * 32 hexadecimal digits. `metadata` is the manifest's, `spec` the same with its defaults, `from` says where the manifest is
 * ("host:<node>file:<path>" or "url:<url>"). Undefined for the few manifests whose form in a kubelet's memory is not known
 * here: with a creationTimestamp, resources of the pod as a whole, or figures beyond 64 bits.
 */
export function kubeletStaticUid(metadata: object, spec: Pod['spec'], from: string): string | undefined {
  try {
    return createHash('md5')
      .update(dumpPod(metadata, spec) + from)
      .digest('hex');
  } catch (error) {
    if (error instanceof NotDumped) return undefined;
    throw error;
  }
}
