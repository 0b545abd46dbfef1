// The pod's sandbox cannot be made: the network's plugins, no network configuration, no free address, or the runtime itself.

import type { PodFacts } from '../facts.ts';
import type { Cause, Command, Rule } from '../finding.ts';
import { hasStarted, isDeleted, isEnded, isScheduled, lastEvent, timing } from '../pod-view.ts';

interface Reason {
  readonly verdict: string;
  readonly command?: Command;
}

const CONFIGURATION: Command = {
  command: 'ls -l /etc/cni/net.d /opt/cni/bin',
  why: 'the network configuration and the plugins (in a lab: cni/net.d below its root, and /usr/lib/cni)',
};

/** What the error of RunPodSandbox means. Pure. */
export function sandboxReason(answer: string): Reason {
  if (/no addresses? available|no IP addresses available|range is full/i.test(answer)) {
    return { verdict: 'the network has no free address left for it', command: CONFIGURATION };
  }
  const plugin = /failed to find plugin "([^"]+)"/.exec(answer)?.[1];
  if (plugin !== undefined) {
    return {
      verdict: `the network configuration names CNI plugin ${plugin}, whose program is not there`,
      command: CONFIGURATION,
    };
  }
  if (
    /no network config(uration)? found|cni plugin not initialized|no networks found|cni config uninitialized/i.test(
      answer,
    )
  ) {
    return { verdict: 'there is no network configuration on the node', command: CONFIGURATION };
  }
  if (/failed to setup network|plugin type="|networkPlugin cni failed|CNI/i.test(answer)) {
    return { verdict: 'its network cannot be set up', command: CONFIGURATION };
  }
  if (/OOM-killed|memory limit too low|cgroup.*cannot allocate memory/is.test(answer)) {
    return {
      verdict: 'its cgroup has too little memory for the sandbox itself: the limits of its containers are too low',
    };
  }
  if (/cgroup/i.test(answer)) return { verdict: 'its cgroup cannot be made' };
  if (/get sandbox image|failed to pull image/i.test(answer))
    return { verdict: 'the image of the pause container cannot be had' };
  return { verdict: 'its sandbox cannot be made' };
}

export const sandboxFailed: Rule<PodFacts> = {
  name: 'sandbox-failed',
  find: (facts) => {
    if (!isScheduled(facts) || isDeleted(facts) || isEnded(facts) || hasStarted(facts)) return undefined;
    const event = lastEvent(facts, ['FailedCreatePodSandBox', 'NetworkNotReady']);
    if (event === undefined || facts.runtime?.sandboxes.some(({ ready }) => ready) === true) return undefined;
    const isNetworkAway = event.reason === 'NetworkNotReady';
    const cni = facts.spans.findLast(
      ({ kind, outcome, name }) => kind === 'cni' && outcome === 'error' && /^ADD /.test(name),
    );
    const answer = event.message.replace(/^(\(combined from similar events\): )?Failed to create pod sandbox: /, '');
    const reason = isNetworkAway
      ? { verdict: 'the network of its node is not ready' }
      : sandboxReason(`${answer} ${cni?.error ?? ''}`);
    const plugin: readonly Cause[] =
      cni === undefined
        ? []
        : [
            {
              text: 'a step of the network’s configuration failed',
              call: { name: cni.name, to: 'the CNI plugin', answer: cni.error ?? '' },
            },
          ];
    return {
      state: 'broken',
      verdict: reason.verdict,
      chain: [
        { text: 'the pod has no sandbox, and so no network and no containers' },
        {
          text: 'the container runtime could not make it',
          call: { name: 'RunPodSandbox', to: 'the container runtime', answer },
          ...timing(event),
        },
        ...plugin,
      ],
      commands: reason.command === undefined ? [] : [reason.command],
    };
  },
};
