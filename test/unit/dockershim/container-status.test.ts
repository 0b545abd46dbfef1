import type { ContainerInspectInfo } from 'dockerode';
import { expect, test } from 'vitest';
import { endOf, listedState, nanosOf } from '../../../dockershim/translate/container-status.ts';

const STATE: ContainerInspectInfo['State'] = {
  Status: 'exited',
  Running: false,
  Paused: false,
  Restarting: false,
  OOMKilled: false,
  Dead: false,
  Pid: 0,
  ExitCode: 0,
  Error: '',
  StartedAt: '',
  FinishedAt: '',
};

test.each([
  [{ ExitCode: 0 }, 0, 'Completed'],
  [{ ExitCode: 3 }, 3, 'Error'],
  [{ ExitCode: 137, OOMKilled: true }, 137, 'OOMKilled'],
  [{ Status: 'running', Running: true }, 0, ''],
  [{ Status: 'created' }, 0, ''],
  // Docker leaves one that could not be started as "created".
  [{ Status: 'created', ExitCode: 127, Error: 'no such file' }, 128, 'StartError'],
])('%j ends with %d %s', (state, exit_code, reason) => {
  expect(endOf({ ...STATE, ...state })).toMatchObject({ exit_code, reason });
});

test('one that ended for want of memory, which Docker has not noticed', () => {
  expect(endOf({ ...STATE, ExitCode: 137 }, true)).toMatchObject({ exit_code: 137, reason: 'OOMKilled' });
});

test.each([
  ['2026-11-22T22:39:43.20545333Z', '1795387183205453330'],
  ['2026-11-22T22:39:43Z', '1795387183000000000'],
  ['2026-11-22T23:39:43.000000001+01:00', '1795387183000000001'],
  ['0001-01-01T00:00:00Z', '0'],
  ['', '0'],
])('%s is %s ns', (time, expected) => {
  expect(nanosOf(time)).toBe(expected);
});

test.each([
  ['created', 'CONTAINER_CREATED'],
  ['running', 'CONTAINER_RUNNING'],
  ['paused', 'CONTAINER_RUNNING'],
  ['exited', 'CONTAINER_EXITED'],
  ['removing', 'CONTAINER_EXITED'],
  ['dead', 'CONTAINER_EXITED'],
  ['new', 'CONTAINER_UNKNOWN'],
])('%s', (status, expected) => {
  expect(listedState(status)).toBe(expected);
});
