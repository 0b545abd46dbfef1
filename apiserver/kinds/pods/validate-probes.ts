// Rules for probes and lifecycle hooks: exactly one handler, sane figures, ports that can exist.

import { addErrors, forbidden, invalid, nonNegative, oneOf, required, syntax } from '../field-errors.ts';
import { httpHeaderName, portName, portNumber } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, Lifecycle, Probe } from '../shapes.ts';

type Handler = NonNullable<Lifecycle['preStop']> & { grpc?: Probe['grpc'] };

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
    addErrors(errors, oneOf(`${at}.scheme`, handler.httpGet.scheme, ['HTTP', 'HTTPS']));
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
    const grace = graceSeconds ?? 30;
    if (seconds < 0 || seconds > grace) {
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

export function validateLifecycle(field: string, lifecycle: Lifecycle, graceSeconds: number | undefined): FieldError[] {
  return (['postStart', 'preStop'] as const).flatMap((hook) => {
    const handler = lifecycle[hook];
    return handler === undefined ? [] : validateHandler(`${field}.${hook}`, handler, graceSeconds);
  });
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
