// crictl's commands with their flags, as `nodelet crictl --help` shows them. What a command does is loaded when it runs.

import type { FlagSpec } from './arguments.ts';
import type { CommandSpec } from './invocation.ts';

const bool = (name: string, aliases: string, usage: string): FlagSpec => ({
  name,
  kind: 'bool',
  ...named(aliases),
  usage,
});
const text = (name: string, aliases: string, usage: string, preset?: string): FlagSpec => ({
  name,
  kind: 'text',
  ...named(aliases),
  usage,
  ...(preset !== undefined && { preset }),
});
const int = (name: string, aliases: string, usage: string, preset?: string): FlagSpec => ({
  ...text(name, aliases, usage, preset),
  kind: 'int',
});
const list = (name: string, aliases: string, usage: string): FlagSpec => ({
  name,
  kind: 'list',
  ...named(aliases),
  usage,
});
const duration = (name: string, aliases: string, usage: string, env?: string): FlagSpec => ({
  name,
  kind: 'duration',
  ...named(aliases),
  usage,
  ...(env !== undefined && { env }),
});

/** "o": -o; "" is none. */
function named(aliases: string): { readonly aliases?: readonly string[] } {
  return aliases === '' ? {} : { aliases: aliases.split(' ') };
}

const ALL_CONTAINERS = bool('all', 'a', 'show all containers');
const LABEL = list('label', '', 'filter by key=value label');
const QUIET_IDS = bool('quiet', 'q', 'only show ids');
const QUIET = bool('quiet', 'q', 'do not show verbose information');
const NO_TRUNC = bool('no-trunc', '', 'show whole ids');
const NAMESPACE = text('namespace', '', 'filter by pod namespace (regular expression)');
const TEMPLATE = text('template', '', 'the template of the output format go-template');
const output = (formats: string, preset?: string): FlagSpec => text('output', 'o', `one of ${formats}`, preset);
const newest = (what: string): readonly FlagSpec[] => [
  bool('latest', 'l', `only the most recently created ${what}`),
  int('last', 'n', `only the n most recently created ${what}s; 0 is all`),
];
const FORCE = bool('force', 'f', 'stop it first when it runs');
const RUNTIME = text('runtime', 'r', 'runtime handler to use');
const CANCEL = duration('cancel-timeout', 'T', 'how long the request may take');
const PULL_TIMEOUT = duration('pull-timeout', 'pt', 'how long a pull may take; 0s is no limit', 'CRICTL_PULL_TIMEOUT');
const CREDS = text('creds', '', 'USERNAME[:PASSWORD] for the registry');
const AUTH = text('auth', '', 'base64 of USERNAME[:PASSWORD] for the registry');
const PULLING: readonly FlagSpec[] = [
  bool('no-pull', '', 'do not pull the image'),
  bool('with-pull', '', 'pull the image'),
  CREDS,
  AUTH,
  text('username', '', 'username for the registry; the password is asked for'),
  CANCEL,
  PULL_TIMEOUT,
];
const CONTAINER_FILTERS: readonly FlagSpec[] = [
  text('name', '', 'filter by container name (regular expression)'),
  text('pod', 'p', 'filter by pod id'),
  text('image', '', 'filter by image'),
  LABEL,
  ...newest('container'),
];
const IMAGE_FILTER = list(
  'filter',
  'f',
  'dangling=true|false, reference=REGEXP, before=IMAGE or since=IMAGE; several are combined',
);
const STREAMING: readonly FlagSpec[] = [
  text('transport', 'r', 'transport of the streams: spdy|websocket', 'spdy'),
  text('tls-sni', 'tls-server-name', 'server name that the streaming certificate must have', 'localhost'),
  text('tls-ca', '', 'file with the CA of the streaming server'),
  text('tls-cert', '', 'file with a client certificate for streaming'),
  text('tls-key', '', 'file with its key'),
];
const WATCH = bool('watch', 'w', 'show again and again, until Ctrl-C');
const SAMPLE = int('seconds', 's', 'seconds between the two measurements of CPU usage', '1');

export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'attach',
    usage: 'Attach to a running container',
    args: 'CONTAINER-ID',
    flags: [bool('tty', 't', 'use a terminal'), bool('stdin', 'i', 'pass stdin on'), ...STREAMING],
    run: async (invocation) => (await import('./exec.ts')).attach(invocation),
  },
  {
    name: 'checkpoint',
    usage: 'Checkpoint one or more running containers',
    args: 'CONTAINER-ID [CONTAINER-ID...]',
    flags: [text('export', 'e', 'tar archive to write (/path/to/checkpoint.tar)')],
    run: async (invocation) => (await import('./lifecycle.ts')).checkpoint(invocation),
  },
  {
    name: 'completion',
    usage: 'Output shell completion code',
    args: '[bash|zsh|fish]',
    flags: [],
    run: async (invocation) => (await import('./completion.ts')).completion(invocation, COMMANDS),
  },
  {
    name: 'config',
    usage: 'Get, set and list crictl configuration options',
    args: '[OPTION VALUE]',
    flags: [
      text('get', '', 'show the value of an option'),
      list('set', '', 'set options: opt1=val1,opt2=val2'),
      bool('list', '', 'show all options'),
    ],
    run: async (invocation) => (await import('./config-command.ts')).config(invocation),
  },
  {
    name: 'create',
    usage: 'Create a new container',
    args: 'POD-ID container-config.[json|yaml] pod-config.[json|yaml]',
    flags: PULLING,
    run: async (invocation) => (await import('./lifecycle.ts')).create(invocation),
  },
  {
    name: 'events',
    aliases: ['event'],
    usage: 'Stream the events of containers',
    flags: [output('json, yaml, go-template', 'json'), TEMPLATE],
    run: async (invocation) => (await import('./runtime.ts')).events(invocation),
  },
  {
    name: 'exec',
    usage: 'Run a command in a running container',
    args: '[CONTAINER-ID] COMMAND [ARG...]',
    flagsFirst: true,
    flags: [
      bool('sync', 's', 'run the command by ExecSync and print its output when it has ended'),
      int('timeout', '', 'time limit of --sync, in seconds'),
      bool('tty', 't', 'use a terminal'),
      bool('interactive', 'i', 'pass stdin on'),
      ...CONTAINER_FILTERS,
      text('state', '', 'filter by container state'),
      bool('quiet', 'q', 'do not print the ids of several containers'),
      bool('ignore-errors', 'e', 'go on and exit with 0 when the command fails'),
      bool('parallel', 'x', 'run in several containers at once'),
      ...STREAMING,
    ],
    run: async (invocation) => (await import('./exec.ts')).exec(invocation),
  },
  {
    name: 'imagefsinfo',
    usage: 'Return image filesystem info',
    flags: [output('json, yaml, go-template, table'), TEMPLATE],
    run: async (invocation) => (await import('./images.ts')).imageFsInfo(invocation),
  },
  {
    name: 'images',
    aliases: ['image', 'img'],
    usage: 'List images',
    args: '[REPOSITORY[:TAG]]',
    flags: [
      bool('verbose', 'v', 'show everything about each image'),
      QUIET_IDS,
      IMAGE_FILTER,
      output('json, yaml, table'),
      bool('digests', '', 'show digests'),
      NO_TRUNC,
      bool('pinned', '', 'show whether images are pinned'),
    ],
    run: async (invocation) => (await import('./images.ts')).listImages(invocation),
  },
  {
    name: 'info',
    usage: 'Display information of the container runtime',
    flags: [output('json, yaml, go-template', 'json'), QUIET, TEMPLATE],
    run: async (invocation) => (await import('./runtime.ts')).info(invocation),
  },
  {
    name: 'inspect',
    usage: 'Display the status of one or more containers',
    args: 'CONTAINER-ID [CONTAINER-ID...]',
    flags: [
      output('json, yaml, go-template, table'),
      QUIET,
      TEMPLATE,
      ...CONTAINER_FILTERS,
      text('state', 's', 'filter by container state'),
      NAMESPACE,
      ALL_CONTAINERS,
    ],
    run: async (invocation) => (await import('./containers.ts')).inspectContainers(invocation),
  },
  {
    name: 'inspecti',
    usage: 'Return the status of one or more images',
    args: 'IMAGE-ID [IMAGE-ID...]',
    flags: [
      output('json, yaml, go-template, table'),
      QUIET,
      TEMPLATE,
      text('name', '', 'filter by image name'),
      IMAGE_FILTER,
    ],
    run: async (invocation) => (await import('./images.ts')).inspectImages(invocation),
  },
  {
    name: 'inspectp',
    usage: 'Display the status of one or more pods',
    args: 'POD-ID [POD-ID...]',
    flags: [
      output('json, yaml, go-template, table'),
      QUIET,
      TEMPLATE,
      text('name', '', 'filter by pod name (regular expression)'),
      NAMESPACE,
      text('state', 's', 'filter by pod state'),
      LABEL,
      ...newest('pod'),
    ],
    run: async (invocation) => (await import('./pods.ts')).inspectPods(invocation),
  },
  {
    name: 'logs',
    usage: 'Fetch the logs of a container',
    args: 'CONTAINER-ID',
    flags: [
      bool('follow', 'f', 'go on with what is written later'),
      bool('previous', 'p', 'the log of the container’s instance before'),
      bool('reopen', 'r', 'make the runtime reopen the log file first'),
      int('tail', '', 'only so many lines from the end', '-1'),
      int('limit-bytes', '', 'at most so many bytes', '-1'),
      text('since', '', 'only lines since a time (2013-01-02T13:23:37) or for a duration (42m)'),
      bool('timestamps', 't', 'show timestamps'),
      text('stream', 's', 'only stdout or stderr'),
    ],
    run: async (invocation) => (await import('./logs.ts')).logs(invocation),
  },
  {
    name: 'metricdescs',
    usage: 'List metric descriptors',
    flags: [output('json, yaml')],
    run: async (invocation) => (await import('./stats.ts')).metricDescriptors(invocation),
  },
  {
    name: 'metricsp',
    usage: 'List pod metrics',
    flags: [output('json, yaml'), WATCH],
    run: async (invocation) => (await import('./stats.ts')).metricsPods(invocation),
  },
  {
    name: 'pods',
    usage: 'List pods',
    flags: [
      text('id', '', 'filter by pod id'),
      text('name', '', 'filter by pod name (regular expression)'),
      NAMESPACE,
      text('state', 's', 'filter by pod state: ready or notready'),
      LABEL,
      bool('verbose', 'v', 'show everything about each pod'),
      QUIET_IDS,
      output('json, yaml, table', 'table'),
      ...newest('pod'),
      NO_TRUNC,
    ],
    run: async (invocation) => (await import('./pods.ts')).listPods(invocation),
  },
  {
    name: 'port-forward',
    usage: 'Forward local port to a pod',
    args: 'POD-ID [LOCAL_PORT:]REMOTE_PORT',
    flags: STREAMING,
    run: async (invocation) => (await import('./exec.ts')).portForward(invocation),
  },
  {
    name: 'ps',
    usage: 'List containers',
    flags: [
      bool('verbose', 'v', 'show everything about each container'),
      text('id', '', 'filter by container id'),
      ...CONTAINER_FILTERS,
      text('state', 's', 'filter by container state: created, running, exited or unknown'),
      QUIET_IDS,
      output('json, yaml, table', 'table'),
      ALL_CONTAINERS,
      NO_TRUNC,
      bool('resolve-image-path', 'r', 'show the image’s name instead of its id'),
      NAMESPACE,
    ],
    run: async (invocation) => (await import('./containers.ts')).listContainers(invocation),
  },
  {
    name: 'pull',
    usage: 'Pull an image from a registry',
    args: 'NAME[:TAG|@DIGEST]',
    flags: [
      { ...CREDS, env: 'CRICTL_CREDS' },
      { ...AUTH, env: 'CRICTL_AUTH' },
      text('username', 'u', 'username for the registry; the password is asked for'),
      text('pod-config', '', 'pod-config.[json|yaml] of the pod that the image is for'),
      list('annotation', 'a', 'annotation of the image: key=value'),
      PULL_TIMEOUT,
    ],
    run: async (invocation) => (await import('./images.ts')).pull(invocation),
  },
  {
    name: 'rm',
    usage: 'Remove one or more containers',
    args: 'CONTAINER-ID [CONTAINER-ID...]',
    flags: [FORCE, bool('keep-logs', 'k', 'leave the log files'), bool('all', 'a', 'remove all containers')],
    run: async (invocation) => (await import('./lifecycle.ts')).removeContainers(invocation),
  },
  {
    name: 'rmi',
    usage: 'Remove one or more images, each with all of its tags',
    args: 'IMAGE-ID [IMAGE-ID...]',
    flags: [bool('all', 'a', 'remove all images'), bool('prune', 'q', 'remove all images that nothing uses')],
    run: async (invocation) => (await import('./images.ts')).removeImages(invocation),
  },
  {
    name: 'rmp',
    usage: 'Remove one or more pods',
    args: 'POD-ID [POD-ID...]',
    flags: [FORCE, bool('all', 'a', 'remove all pods')],
    run: async (invocation) => (await import('./lifecycle.ts')).removePods(invocation),
  },
  {
    name: 'run',
    usage: 'Run a new container inside a sandbox',
    args: 'container-config.[json|yaml] pod-config.[json|yaml]',
    flags: [...PULLING, RUNTIME],
    run: async (invocation) => (await import('./lifecycle.ts')).run(invocation),
  },
  {
    name: 'runp',
    usage: 'Run a new pod',
    args: 'pod-config.[json|yaml]',
    flags: [RUNTIME, CANCEL],
    run: async (invocation) => (await import('./lifecycle.ts')).runp(invocation),
  },
  {
    name: 'runtime-config',
    usage: 'Retrieve the container runtime configuration',
    flags: [],
    run: async (invocation) => (await import('./runtime.ts')).runtimeConfig(invocation),
  },
  {
    name: 'start',
    usage: 'Start one or more created containers',
    args: 'CONTAINER-ID [CONTAINER-ID...]',
    flags: [],
    run: async (invocation) => (await import('./lifecycle.ts')).start(invocation),
  },
  {
    name: 'stats',
    usage: 'List container(s) resource usage statistics',
    args: '[ID]',
    flags: [
      ALL_CONTAINERS,
      text('id', '', 'filter by container id'),
      text('pod', 'p', 'filter by pod id'),
      LABEL,
      output('json, yaml, table'),
      SAMPLE,
      WATCH,
    ],
    run: async (invocation) => (await import('./stats.ts')).stats(invocation),
  },
  {
    name: 'statsp',
    usage: 'List pod statistics',
    args: '[ID]',
    flags: [text('id', '', 'filter by pod id'), LABEL, output('json, yaml, table'), SAMPLE, WATCH],
    run: async (invocation) => (await import('./stats.ts')).statsPods(invocation),
  },
  {
    name: 'stop',
    usage: 'Stop one or more running containers',
    args: 'CONTAINER-ID [CONTAINER-ID...]',
    flags: [
      int('timeout', 't', 'seconds until a container is killed'),
      bool('all', 'a', 'stop all running containers'),
    ],
    run: async (invocation) => (await import('./lifecycle.ts')).stop(invocation),
  },
  {
    name: 'stopp',
    usage: 'Stop one or more running pods',
    args: 'POD-ID [POD-ID...]',
    flags: [],
    run: async (invocation) => (await import('./lifecycle.ts')).stopPods(invocation),
  },
  {
    name: 'update',
    usage: 'Update one or more running containers',
    args: 'CONTAINER-ID [CONTAINER-ID...]',
    flags: [
      int('cpu-count', '', '(Windows only) number of CPUs'),
      int('cpu-maximum', '', '(Windows only) portion of CPU cycles'),
      int('cpu-period', '', 'CFS period in microseconds; 0 is the system’s'),
      int('cpu-quota', '', 'CFS quota in microseconds: CPU time in a period'),
      int('cpu-share', '', 'CPU shares (weight against other containers)'),
      int('memory', '', 'memory limit in bytes'),
      text('cpuset-cpus', '', 'CPUs to use'),
      text('cpuset-mems', '', 'memory nodes to use'),
      text('oom-score-adj', '', 'OOM killer score'),
    ],
    run: async (invocation) => (await import('./lifecycle.ts')).update(invocation),
  },
  {
    name: 'update-runtime-config',
    usage: 'Update the runtime configuration',
    flags: [text('pod-cidr', 'p', 'the range of pod addresses')],
    run: async (invocation) => (await import('./runtime.ts')).updateRuntimeConfig(invocation),
  },
  {
    name: 'version',
    usage: 'Display runtime version information',
    flags: [],
    run: async (invocation) => (await import('./runtime.ts')).version(invocation),
  },
];
