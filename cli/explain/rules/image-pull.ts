// The image cannot be pulled: what failed on the way to the registry, or what the registry answered.

import { parseImageName } from '../../../agent/model/image-name.ts';
import { credentialsFor } from '../../../agent/pods/image-credentials.ts';
import { crictlCommand } from '../command-text.ts';
import type { PodFacts, RegistryAccount } from '../facts.ts';
import type { Command, Rule } from '../finding.ts';
import { endOf, failuresInARow, isDeleted, lastEvent, nextTry, timing, waitingFor } from '../pod-view.ts';
import { DOCKER_HUB, type PullError, pullError, registryOf } from '../pull-error.ts';
import { list } from '../words.ts';

/** The kubelet's pauses between pulls of one image: 10 s, doubling, at most 5 min. ms */
const PULL_BACKOFF = { initialMs: 10_000, maxMs: 300_000, factor: 2 };

/** What one Secret of imagePullSecrets was good for. */
function secretText({ references }: PodFacts, name: string, image: string): string {
  const lookup = references.secrets.get(name);
  if (lookup?.state === 'absent') return `Secret ${name} of its imagePullSecrets does not exist`;
  if (lookup?.state !== 'found') return `Secret ${name} of its imagePullSecrets could not be looked at`;
  const { accounts = [], problem } = lookup.value;
  if (problem !== undefined) return `Secret ${name} cannot be used: ${problem}`;
  if (accounts.length === 0) return `Secret ${name} has no credentials for registries`;
  const parsed = parseImageName(image);
  const fits = ({ location, user }: RegistryAccount): boolean =>
    'registry' in parsed && credentialsFor(parsed, [{ location, auth: { username: user } }]).length > 0;
  const used = accounts.filter(fits);
  if (used.length === 0) {
    return `Secret ${name} has credentials for ${list(accounts.map(({ location }) => location))}, and none for this registry`;
  }
  const who = used.map(({ location, user }) => `${user === '' ? 'a token' : `user ${user}`} for ${location}`);
  return `the credentials of Secret ${name} were used: ${list(who)}`;
}

/** With which credentials the pull was tried. */
function credentials(facts: PodFacts, image: string): string {
  const names = (facts.pod.spec.imagePullSecrets ?? []).map(({ name = '' }) => name);
  if (names.length === 0)
    return 'the pod has no imagePullSecrets: only credentials of the node were used, if there are any';
  return names.map((name) => secretText(facts, name, image)).join('; ');
}

function commandsOf(error: PullError, facts: PodFacts, image: string): readonly Command[] {
  const registry = registryOf(image);
  const host = error.host ?? registry;
  const origin = error.origin ?? `https://${registry}`;
  const { namespace } = facts.pod.metadata;
  // kubectl's default is Docker Hub's, which has several names.
  const server = registry === DOCKER_HUB ? '' : ` --docker-server=${registry}`;
  switch (error.step) {
    case 'dns':
      return [
        {
          command: `getent hosts ${host.replace(/:\d+$/, '')}`,
          why: 'on the node: whether the name can be resolved there',
        },
      ];
    case 'tcp':
    case 'timeout':
    case 'tls':
    case 'http':
      return [{ command: `curl -v ${origin}/v2/`, why: 'on the node: the same way to the registry' }];
    case 'unauthorized':
      return [
        {
          command: `kubectl -n ${namespace} create secret docker-registry pull${server} --docker-username=USER --docker-password=PASSWORD`,
          why: 'credentials for the registry; name the Secret in the pod’s imagePullSecrets',
        },
      ];
    case 'platform':
      return [
        { command: 'uname -sm', why: 'on the node: the system and processor that the image has to be made for' },
        { command: `skopeo inspect --raw docker://${image}`, why: 'the platforms that the registry has it for' },
      ];
    case 'rate':
      return [
        {
          command: `curl -sI ${origin}/v2/`,
          why: 'the headers Retry-After and RateLimit-…; credentials of an account have a limit of their own',
        },
      ];
    case 'disk':
      return [{ command: crictlCommand(facts.runtime, 'rmi --prune'), why: 'removes images that no container uses' }];
    default:
      return [
        {
          command: crictlCommand(facts.runtime, `pull ${image}`),
          why: 'on the node: pulls it by hand, after the name and tag have been checked',
        },
      ];
  }
}

export const imagePull: Rule<PodFacts> = {
  name: 'image-pull',
  find: (facts) => {
    const view = waitingFor(
      facts,
      'ErrImagePull',
      'ImagePullBackOff',
      'ImageInspectError',
      'RegistryUnavailable',
      'SignatureValidationFailed',
    );
    if (view === undefined || isDeleted(facts)) return undefined;
    const { name, image = '' } = view.spec;
    const { reason = '', message = '' } = view.status?.state?.waiting ?? {};
    const failures = failuresInARow(
      facts.spans,
      ({ kind, name: call, attributes }) => kind === 'cri' && call === 'PullImage' && attributes['image'] === image,
    );
    const event = lastEvent(facts, ['Failed'], /^Failed to pull image/);
    const last = failures.at(-1);
    const text = last?.error ?? event?.message ?? message;
    const error = pullError(text, image);
    const next = nextTry(failures, event, PULL_BACKOFF);
    return {
      state: 'broken',
      verdict: `image ${image} of container ${name} cannot be pulled: ${error.verdict.replace(/^it cannot be pulled$/, error.answer)}`,
      chain: [
        { text: `container ${name} waits, the reason is ${reason}` },
        {
          text: 'the container runtime could not pull the image',
          call: { name: 'PullImage', to: 'the container runtime', with: image, answer: error.answer },
          ...(event === undefined && last !== undefined ? { at: endOf(last) } : timing(event)),
          ...(next === undefined ? {} : { next }),
        },
        { text: error.verdict },
        ...(error.step === 'unauthorized' || error.step === 'not-found' ? [{ text: credentials(facts, image) }] : []),
        ...(error.fine.length === 0 ? [] : [{ text: `on the way there this worked: ${list(error.fine)}` }]),
      ],
      commands: commandsOf(error, facts, image),
    };
  },
};
