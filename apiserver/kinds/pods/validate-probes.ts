// Rules for probes and lifecycle hooks: exactly one handler, sane figures, ports that can exist.

import { getOwn } from '../../../lib/own-property.ts';
import { addErrors, forbidden, invalid, nonNegative, notSupported, required, syntax } from '../field-errors.ts';
import { httpHeaderName, portName, portNumber } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, Lifecycle, PodSpec, Probe } from '../shapes.ts';

type Handler = NonNullable<Lifecycle['preStop']> & { grpc?: Probe['grpc'] };

const SCHEMES = ['HTTP', 'HTTPS'];

/** A port by number or by name. */
function validatePort(field: string, port: number | string | undefined): FieldError[] {
  if (typeof port === 'string') return syntax(field, port, portName(port));
  return syntax(field, port ?? 0, portNumber(port ?? 0));
}

function validateHandler(field: string, handler: Handler, graceSeconds: number | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const found: string[] = [];
  const claim = (name: string): boolean => {
    found.push(name);
    if (found.length === 1) return true;
    errors.push(forbidden(`${field}.${name}`, 'may not specify more than 1 handler type'));
    return false;
  };
  if (handler.exec !== undefined && claim('exec')) {
    if ((handler.exec.command ?? []).length === 0) errors.push(required(`${field}.exec.command`));
  }
  if (handler.httpGet !== undefined && claim('httpGet')) {
    const at = `${field}.httpGet`;
    if ((handler.httpGet.path ?? '') === '') errors.push(required(`${at}.path`));
    addErrors(errors, validatePort(`${at}.port`, handler.httpGet.port));
    const { scheme = '' } = handler.httpGet;
    if (!SCHEMES.includes(scheme)) errors.push(notSupported(`${at}.scheme`, scheme, SCHEMES));
    for (const header of handler.httpGet.httpHeaders ?? []) {
      addErrors(errors, syntax(`${at}.httpHeaders`, header.name ?? '', httpHeaderName(header.name ?? '')));
    }
  }
  if (handler.tcpSocket !== undefined && claim('tcpSocket')) {
    addErrors(errors, validatePort(`${field}.tcpSocket.port`, handler.tcpSocket.port));
  }
  if (handler.grpc !== undefined && claim('grpc')) {
    addErrors(errors, syntax(`${field}.grpc.port`, handler.grpc.port ?? 0, portNumber(handler.grpc.port ?? 0)));
  }
  if (handler.sleep !== undefined && claim('sleep')) {
    const seconds = handler.sleep.seconds ?? 0;
    // A grace period that is none is an error of its own.
    const grace = graceSeconds ?? Number.POSITIVE_INFINITY;
    if (graceSeconds !== undefined && (seconds < 0 || seconds > grace)) {
      errors.push(
        invalid(
          `${field}.sleep`,
          seconds,
          `must be non-negative and less than terminationGracePeriodSeconds (${grace})`,
        ),
      );
    }
  }
  if (found.length === 0) errors.push(required(field, 'must specify a handler type'));
  return errors;
}

export function validateLifecycle(field: string, lifecycle: Lifecycle, spec: PodSpec): FieldError[] {
  const errors = (['postStart', 'preStop'] as const).flatMap((hook) => {
    const handler = lifecycle[hook];
    return handler === undefined
      ? []
      : validateHandler(`${field}.${hook}`, handler, spec.terminationGracePeriodSeconds);
  });
  if (lifecycle.stopSignal === undefined) return errors;
  return errors.concat(validateStopSignal(`${field}.stopSignal`, lifecycle.stopSignal, spec.os?.name));
}

const numbered = (prefix: string, last: number): string[] =>
  Array.from({ length: last }, (_, index) => `${prefix}${index + 1}`);
/** As upstream lists them, sorted. */
const LINUX_SIGNALS = [
  ...['ABRT', 'ALRM', 'BUS', 'CHLD', 'CLD', 'CONT', 'FPE', 'HUP', 'ILL', 'INT', 'IO', 'IOT', 'KILL', 'PIPE', 'POLL'],
  ...['PROF', 'PWR', 'QUIT', 'RTMAX', ...numbered('RTMAX-', 14), 'RTMIN', ...numbered('RTMIN+', 15), 'SEGV'],
  ...['STKFLT', 'STOP', 'SYS', 'TERM', 'TRAP', 'TSTP', 'TTIN', 'TTOU', 'URG', 'USR1', 'USR2', 'VTALRM', 'WINCH'],
  ...['XCPU', 'XFSZ'],
]
  .map((name) => `SIG${name}`)
  .sort();
const SIGNALS: Readonly<Record<string, readonly string[]>> = {
  linux: LINUX_SIGNALS,
  windows: ['SIGKILL', 'SIGTERM'],
};

/** Which signals there are depends on the operating system, which the pod has to name. */
function validateStopSignal(field: string, signal: string, os: string | undefined): FieldError[] {
  if (os === undefined) return [forbidden(field, 'may not be set for containers with empty `spec.os.name`')];
  const known = getOwn(SIGNALS, os);
  return known === undefined || known.includes(signal) ? [] : [notSupported(field, signal, known)];
}

type ProbeField = 'livenessProbe' | 'readinessProbe' | 'startupProbe';

function validateProbe(field: string, probe: Probe): FieldError[] {
  const errors = validateHandler(field, probe, undefined);
  for (const figure of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ] as const) {
    addErrors(errors, nonNegative(`${field}.${figure}`, probe[figure]));
  }
  const grace = probe.terminationGracePeriodSeconds;
  if (grace !== undefined && grace <= 0) {
    errors.push(invalid(`${field}.terminationGracePeriodSeconds`, grace, 'must be greater than 0'));
  }
  return errors;
}

export function validateProbes(field: string, container: Container): FieldError[] {
  const errors: FieldError[] = [];
  for (const kind of ['livenessProbe', 'readinessProbe', 'startupProbe'] satisfies ProbeField[]) {
    const probe = container[kind];
    if (probe === undefined) continue;
    addErrors(errors, validateProbe(`${field}.${kind}`, probe));
    // Only readiness can recover; a failure of the others restarts the container.
    if (kind !== 'readinessProbe' && (probe.successThreshold ?? 1) !== 1) {
      errors.push(invalid(`${field}.${kind}.successThreshold`, probe.successThreshold, 'must be 1'));
    }
    if (kind === 'readinessProbe' && probe.terminationGracePeriodSeconds !== undefined) {
      errors.push(
        invalid(
          `${field}.${kind}.terminationGracePeriodSeconds`,
          probe.terminationGracePeriodSeconds,
          'must not be set for readinessProbes',
        ),
      );
    }
  }
  return errors;
}
