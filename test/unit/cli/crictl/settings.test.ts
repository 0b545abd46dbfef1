import { describe, expect, test } from 'vitest';
import { parseArguments } from '../../../../cli/crictl/arguments.ts';
import { changeConfig, NO_CONFIG, parseConfig, parseSettings } from '../../../../cli/crictl/config-file.ts';
import { rpcError, socketPath } from '../../../../cli/crictl/cri.ts';
import { deadlineOf } from '../../../../cli/crictl/deadlines.ts';
import { KUBELET_STEPS } from '../../../../cli/crictl/explain.ts';
import { GLOBAL_FLAGS, resolveSettings } from '../../../../cli/crictl/settings.ts';
import { loadProto } from '../../../../proto/load.ts';
import { GrpcError } from '../../../../proto/unary.ts';

function settings(words: readonly string[], env: Record<string, string> = {}, config = NO_CONFIG) {
  const written = parseArguments(GLOBAL_FLAGS, words, { env: {}, flagsFirst: true }).flags;
  const { flags } = parseArguments(GLOBAL_FLAGS, words, { env, flagsFirst: true });
  return resolveSettings(
    flags,
    (name) => written.isSet(name),
    config,
    (root) => `lab:${root ?? 'default'}`,
  );
}

const FILE = { ...NO_CONFIG, 'runtime-endpoint': 'file', 'image-endpoint': 'file-image', timeout: 7 };
const ENV = { CONTAINER_RUNTIME_ENDPOINT: 'env', IMAGE_SERVICE_ENDPOINT: 'env-image' };

describe('the endpoint', () => {
  test.each([
    [[], {}, NO_CONFIG, undefined, undefined],
    [[], {}, FILE, 'file', 'file-image'],
    [[], ENV, FILE, 'env', 'env-image'],
    [['-r', 'flag', '-i', 'flag-image'], ENV, FILE, 'flag', 'flag-image'],
    [['-r', 'flag'], {}, NO_CONFIG, 'flag', undefined],
    [['--lab'], ENV, FILE, 'lab:default', 'lab:default'],
    [['--root', '/x'], ENV, FILE, 'lab:/x', 'lab:/x'],
  ])('%j, environment %j, file %j', (words, env, config, runtimeEndpoint, imageEndpoint) => {
    expect(settings(words, env, config)).toMatchObject({ runtimeEndpoint, imageEndpoint });
  });

  test('is named once on the command line', () => {
    expect(() => settings(['--lab', '-r', 'x'])).toThrow('--lab and --root name the endpoint already');
    expect(() => settings(['-r', ''])).toThrow('--runtime-endpoint is not set');
  });

  test('is a unix socket', () => {
    expect([socketPath('unix:///run/x.sock'), socketPath('/run/x.sock')]).toEqual(['/run/x.sock', '/run/x.sock']);
    expect(() => socketPath('tcp://127.0.0.1:1')).toThrow('"tcp://127.0.0.1:1" is not supported');
  });
});

test.each([
  [[], NO_CONFIG, 2000],
  [[], FILE, 7000],
  [['-t', '3s'], FILE, 3000],
  [['-t', '0s'], FILE, 2000],
  [['-t', '-1s'], NO_CONFIG, 2000],
])('with %j the timeout is right', (words, config, timeoutMs) => {
  expect(settings(words, {}, config).timeoutMs).toBe(timeoutMs);
});

test('what the file says of pulling and debugging', () => {
  const config = { ...NO_CONFIG, debug: true, 'pull-image-on-create': true, 'disable-pull-on-run': true };
  expect(settings([], {}, config)).toMatchObject({ debug: true, pullOnCreate: true, pullOnRun: false });
  expect(settings(['-D=false'], {}, config).debug).toBe(false);
  expect(settings([])).toMatchObject({ debug: false, pullOnCreate: false, pullOnRun: true });
});

describe('the config file', () => {
  test('is read, with what is not there as it is by default', () => {
    expect(parseConfig('runtime-endpoint: unix:///a\ntimeout: 10\ndebug: true\n')).toEqual({
      ...NO_CONFIG,
      'runtime-endpoint': 'unix:///a',
      timeout: 10,
      debug: true,
    });
    expect([parseConfig(''), parseConfig('# nothing\n')]).toEqual([NO_CONFIG, NO_CONFIG]);
  });

  test.each([
    ['runtime: x', "Config option 'runtime' is not valid"],
    ['constructor: x', "Config option 'constructor' is not valid"],
    ['timeout: soon', "parse timeout value 'soon'"],
    ['debug: maybe', "parse debug value 'maybe'"],
    ['- a', 'it is no mapping'],
    ['a: [', 'load config file'],
  ])('%j is refused', (text, message) => {
    expect(() => parseConfig(text)).toThrow(message);
  });

  test('keeps its comments when it is changed, and names every option afterwards', () => {
    expect(changeConfig('# mine\ndebug: false # loud\n', parseSettings(['debug=true', 'timeout=5']))).toBe(
      [
        '# mine',
        'debug: true # loud',
        'runtime-endpoint: ""',
        'image-endpoint: ""',
        'timeout: 5',
        'pull-image-on-create: false',
        'disable-pull-on-run: false',
        '',
      ].join('\n'),
    );
    expect(parseConfig(changeConfig('', {}))).toEqual(NO_CONFIG);
    expect(() => parseSettings(['nothing=1'])).toThrow('no configuration option named nothing');
    expect(() => parseSettings(['debug'])).toThrow('incorrectly specified option: debug');
  });
});

test.each([
  ['ListContainers', 0, 2000],
  ['RunPodSandbox', 0, 4000],
  ['StopContainer', 10, 12_000],
  ['ExecSync', 3, 5000],
  ['ExecSync', 0, undefined],
  ['PullImage', 0, undefined],
  ['ImageFsInfo', 0, undefined],
] as const)('%s with a grace of %d s may take %j ms', (method, grace, ms) => {
  expect(deadlineOf(method, 2000, grace)).toBe(ms);
});

test('every CRI method has its step of the kubelet, but for the streamed lists, which are not used', () => {
  const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
  const methods = [...Object.keys(RuntimeService.service), ...Object.keys(ImageService.service)];
  expect(Object.keys(KUBELET_STEPS).sort()).toEqual(methods.filter((name) => !name.startsWith('Stream')).sort());
});

test.each([
  ['NOT_FOUND', 'no such container', 'rpc error: code = NotFound desc = no such container'],
  [
    'DEADLINE_EXCEEDED',
    'Deadline exceeded after 2.001s',
    'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
  ],
  ['DEADLINE_EXCEEDED', 'timeout 1s exceeded', 'rpc error: code = DeadlineExceeded desc = timeout 1s exceeded'],
  [
    'UNAVAILABLE',
    'No connection established. Last error: Error: connect ENOENT /run/x.sock (2026)',
    'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/x.sock: connect: no such file or directory"',
  ],
])('%s %j in Go’s words', (code, message, words) => {
  expect(rpcError(new GrpcError('X', code, message), 'unix:///run/x.sock').message).toBe(words);
});
