// The kernel's text files of figures, read into numbers: keyed lines, block devices, pressure, network interfaces. Pure.
// Written without splitting into lines: a page for 110 pods reads more than a thousand of these files.

/** The digits from `start`; undefined where there are none. */
function digitsAt(text: string, start: number): number | undefined {
  let value = 0;
  let index = start;
  for (; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  return index === start ? undefined : value;
}

/** The whole text as one number; undefined for "max" and anything else that is none. */
export function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  return /^\d+$/.test(trimmed) ? Number(trimmed) : undefined;
}

/** The number after `<key> ` at the beginning of a line (memory.stat, cpu.stat, memory.events). */
export function keyed(text: string, key: string): number | undefined {
  if (text.startsWith(key) && text.charCodeAt(key.length) === 32) return digitsAt(text, key.length + 1);
  const at = text.indexOf(`\n${key} `);
  return at < 0 ? undefined : digitsAt(text, at + key.length + 2);
}

/** What a cgroup has read from and written to one block device. */
export interface DeviceIo {
  /** "253:0": major and minor number. */
  readonly device: string;
  /** Bytes and operations. */
  readonly readBytes: number;
  readonly writtenBytes: number;
  readonly reads: number;
  readonly writes: number;
}

type Figure = Exclude<keyof DeviceIo, 'device'>;

function deviceTable(): {
  readonly add: (device: string, figure: Figure, value: number) => void;
  readonly list: () => readonly DeviceIo[];
} {
  const table = new Map<string, Record<Figure, number>>();
  return {
    add(device, figure, value) {
      const row = table.get(device) ?? { readBytes: 0, writtenBytes: 0, reads: 0, writes: 0 };
      row[figure] += value;
      table.set(device, row);
    },
    list: () => [...table].map(([device, row]) => ({ device, ...row })),
  };
}

/** `8:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 …`: io.stat of cgroup v2. */
export function parseIoStat(text: string): readonly DeviceIo[] {
  const figures: ReadonlyMap<string, Figure> = new Map([
    ['rbytes', 'readBytes'],
    ['wbytes', 'writtenBytes'],
    ['rios', 'reads'],
    ['wios', 'writes'],
  ]);
  const devices = deviceTable();
  for (const line of text.split('\n')) {
    const [device = '', ...pairs] = line.trim().split(' ');
    if (!/^\d+:\d+$/.test(device)) continue;
    for (const pair of pairs) {
      const [key = '', value = ''] = pair.split('=');
      const figure = figures.get(key);
      if (figure !== undefined) devices.add(device, figure, Number(value));
    }
  }
  return devices.list();
}

/** `8:0 Read 1024`, `8:0 Write 2048`, …: the two blkio files of cgroup v1, bytes and operations. */
export function parseBlkio(bytes: string, operations: string): readonly DeviceIo[] {
  const devices = deviceTable();
  const read = (text: string, figures: { readonly Read: Figure; readonly Write: Figure }): void => {
    for (const line of text.split('\n')) {
      const [device = '', operation, value = ''] = line.split(' ');
      if (operation === 'Read' || operation === 'Write') devices.add(device, figures[operation], Number(value));
    }
  };
  read(bytes, { Read: 'readBytes', Write: 'writtenBytes' });
  read(operations, { Read: 'reads', Write: 'writes' });
  return devices.list();
}

/** One line of a pressure file: µs in all, and percent of the last 10, 60 and 300 s. */
export interface PressureLine {
  readonly total: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

export interface Pressure {
  /** Some task waited. */
  readonly some: PressureLine;
  /** No task ran. */
  readonly full: PressureLine;
}

const NO_PRESSURE: PressureLine = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

/** `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same for full, which older kernels leave out for cpu. */
export function parsePressure(text: string): Pressure | undefined {
  const line = (kind: 'some' | 'full'): PressureLine | undefined => {
    const match = new RegExp(`^${kind} avg10=([\\d.]+) avg60=([\\d.]+) avg300=([\\d.]+) total=(\\d+)$`, 'm').exec(text);
    if (match === null) return undefined;
    const [, avg10, avg60, avg300, total] = match;
    return { total: Number(total), avg10: Number(avg10), avg60: Number(avg60), avg300: Number(avg300) };
  };
  const some = line('some');
  return some === undefined ? undefined : { some, full: line('full') ?? NO_PRESSURE };
}

export interface PressureFigures {
  readonly cpu?: Pressure;
  readonly memory?: Pressure;
  readonly io?: Pressure;
}

/** The pressure on each resource, from what `read` has of it: cgroups and /proc/pressure have the same three files. */
export function readPressure(read: (resource: 'cpu' | 'memory' | 'io') => string | undefined): PressureFigures {
  const figures: { -readonly [K in keyof PressureFigures]: PressureFigures[K] } = {};
  for (const resource of ['cpu', 'memory', 'io'] as const) {
    const text = read(resource);
    const pressure = text === undefined ? undefined : parsePressure(text);
    if (pressure !== undefined) figures[resource] = pressure;
  }
  return figures;
}

/** The counters of one network interface since it was made. */
export interface InterfaceCounters {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

/** Interfaces that cAdvisor leaves out, by the beginning of their names. */
const IGNORED_INTERFACES = /^(lo|veth|docker|nerdctl)/i;

/** /proc/<pid>/net/dev: the interfaces of that process's network namespace. */
export function parseNetDev(text: string): readonly InterfaceCounters[] {
  const found: InterfaceCounters[] = [];
  for (const line of text.split('\n').slice(2)) {
    const colon = line.indexOf(':');
    if (colon < 0) continue;
    const name = line.slice(0, colon).trim();
    if (IGNORED_INTERFACES.test(name)) continue;
    const fields = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
      .map(Number);
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0] = fields;
    const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = fields.slice(8);
    found.push({ name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped });
  }
  return found;
}
