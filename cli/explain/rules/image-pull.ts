// The image cannot be pulled: what failed on the way to the registry, or what the registry answered.

import type { PodFacts } from '../facts.ts';
import type { Command, Rule } from '../finding.ts';
import { failuresInARow, isDeleted, lastEvent, nextTry, timing, waitingFor } from '../pod-view.ts';
import { type PullError, pullError, registryOf } from '../pull-error.ts';
import { list } from '../words.ts';

/** The kubelet's pauses between pulls of one image: 10 s, doubling, at most 5 min. ms */
const PULL_BACKOFF = { initialMs: 10_000, maxMs: 300_000, factor: 2 };

function credentials({ pod, references }: PodFacts): string {
  const names = (pod.spec.imagePullSecrets ?? []).map(({ name = '' }) => name);
  if (names.length === 0)
    return 'the pod has no imagePullSecrets: only credentials of the node were used, if there are any';
  const absent = names.filter((name) => references.secrets.get(name)?.state === 'absent');
  if (absent.length > 0) return `Secret ${list(absent)} of its imagePullSecrets does not exist`;
  return `the pod gives the credentials of Secret ${list(names)}`;
}

function commandsOf(error: PullError, facts: PodFacts, image: string): readonly Command[] {
  const host = error.host ?? registryOf(image);
  const { namespace } = facts.pod.metadata;
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
      return [{ command: `curl -v https://${host}/v2/`, why: 'on the node: the same way to the registry' }];
    case 'unauthorized':
      return [
        {
          command: `kubectl -n ${namespace} create secret docker-registry pull --docker-server=${host} --docker-username=USER --docker-password=PASSWORD`,
          why: 'credentials for the registry; name the Secret in the pod’s imagePullSecrets',
        },
      ];
    case 'disk':
      return [{ command: 'nodelet crictl rmi --prune', why: 'removes images that no container uses' }];
    default:
      return [
        {
          command: `nodelet crictl pull ${image}`,
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
    const text = failures.at(-1)?.error ?? event?.message ?? message;
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
          ...timing(event),
          ...(next === undefined ? {} : { next }),
        },
        { text: error.verdict },
        ...(error.step === 'unauthorized' || error.step === 'not-found' ? [{ text: credentials(facts) }] : []),
        ...(error.fine.length === 0 ? [] : [{ text: `on the way there this worked: ${list(error.fine)}` }]),
      ],
      commands: commandsOf(error, facts, image),
    };
  },
};
